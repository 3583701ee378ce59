package pipeline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
	"github.com/zeph-tools/zeph-mcp-tools/tools"
)

// starter is a tool that gives programs the variables of a skill. It tells
// what it was given as the summary of its facts.
type starter struct {
	echo
	takes bool
}

func (s starter) Spec() call.Spec {
	spec := s.echo.Spec()
	spec.SkillEnv = s.takes
	return spec
}

func (starter) Facts(raw json.RawMessage) (call.Facts, error) {
	return call.Facts{Summary: string(raw), Text: "x"}, nil
}

// TestSkillVariables: only a trusted caller chooses variables, only for tools
// that start programs, and never through the arguments.
func TestSkillVariables(t *testing.T) {
	t.Parallel()
	ch, err := gates.NewChain(gate{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		trust call.Trust
		takes bool
		args  string
		env   map[string]string
		want  string
	}{
		{"trusted", call.TrustTrusted, true, `{"text":"a"}`, map[string]string{"B": "<2>", "A": "1"}, `{"text":"a","zeph/skill_env":{"A":"1","B":"<2>"}}`},
		{"verified", call.TrustVerified, true, `{"text":"a"}`, map[string]string{"A": "1"}, `{"text":"a"}`},
		{"quarantined", call.TrustQuarantined, true, `{"text":"a"}`, map[string]string{"A": "1"}, `{"text":"a"}`},
		{"nobody", call.TrustUnset, true, `{"text":"a"}`, map[string]string{"A": "1"}, `{"text":"a"}`},
		{"another tool", call.TrustTrusted, false, `{"text":"a"}`, map[string]string{"A": "1"}, `{"text":"a"}`},
		{"none", call.TrustTrusted, true, `{"text":"a"}`, nil, `{"text":"a"}`},
		{"as an argument", call.TrustTrusted, true, `{"text":"a","zeph/skill_env":{"A":"1"}}`, nil, ""},
	} {
		reg, err := tools.NewRegistry(starter{takes: tt.takes})
		if err != nil {
			t.Fatal(err)
		}
		v := pipeline.Explain(t.Context(), reg, ch, pipeline.Request{
			Tool: "echo", Args: json.RawMessage(tt.args), Caller: call.Caller{ID: "x", Trust: tt.trust}, Meta: call.Meta{SkillEnv: tt.env},
		})
		if v.Facts.Summary != tt.want {
			t.Errorf("%s: the tool got %s, want %s", tt.name, v.Facts.Summary, tt.want)
		}
		if tt.want == "" && (v.Code != "invalid_parameters" || !strings.Contains(v.Reason, call.SkillEnvKey)) {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
}
