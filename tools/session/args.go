package session

// args of the status tool: none.
type args struct{}

const inputSchema = `{"type":"object","properties":{},"additionalProperties":false}`

const outputSchema = `{"type":"object","properties":{` +
	`"version":{"type":"string"},"workspace":{"type":"array","items":{"type":"string"}},` +
	`"sandbox":{"type":"object"},"gates":{"type":"array","items":{"type":"string"}},"calls":{"type":"object"}}}`
