package read

import (
	"bytes"
	"unicode/utf8"
)

// sniffBytes is how much of a file decides what it is.
const sniffBytes = 8000

// kind is what the first bytes of a file say it is.
type kind struct {
	name   string // for people
	mime   string
	binary bool
	image  bool
	utf16  string // "le" or "be"
	bom    int    // bytes of a byte order mark
}

// magic is the start of a binary format.
type magic struct {
	prefix     string
	name, mime string
	image      bool
}

func magics() []magic {
	return []magic{
		{"\x89PNG\r\n\x1a\n", "PNG", "image/png", true},
		{"\xff\xd8\xff", "JPEG", "image/jpeg", true},
		{"GIF87a", "GIF", "image/gif", true},
		{"GIF89a", "GIF", "image/gif", true},
		{"\x7fELF", "ELF program or library", "application/x-executable", false},
		{"\xcf\xfa\xed\xfe", "Mach-O program or library", "application/x-mach-binary", false},
		{"MZ", "Windows program", "application/vnd.microsoft.portable-executable", false},
		{"%PDF-", "PDF document", "application/pdf", false},
		{"PK\x03\x04", "ZIP archive or a format built on it", "application/zip", false},
		{"\x1f\x8b", "gzip data", "application/gzip", false},
		{"BZh", "bzip2 data", "application/x-bzip2", false},
		{"\xfd7zXZ\x00", "xz data", "application/x-xz", false},
		{"\x28\xb5\x2f\xfd", "zstd data", "application/zstd", false},
		{"SQLite format 3\x00", "SQLite database", "application/vnd.sqlite3", false},
		{"\x00asm", "WebAssembly module", "application/wasm", false},
		{"\xca\xfe\xba\xbe", "Java class", "application/java-vm", false},
		{"OggS", "Ogg media", "application/ogg", false},
		{"ID3", "MP3 audio", "audio/mpeg", false},
		{"wOF2", "WOFF2 font", "font/woff2", false},
	}
}

// sniff says what a file is from its first bytes.
func sniff(head []byte) kind {
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return kind{name: "UTF-8 with BOM", bom: 3}
	case bytes.HasPrefix(head, []byte("\xff\xfe")) && !bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")):
		return kind{name: "UTF-16LE", utf16: "le", bom: 2}
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return kind{name: "UTF-16BE", utf16: "be", bom: 2}
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return kind{name: "WebP", mime: "image/webp", binary: true, image: true}
	}
	text := bytes.IndexByte(head, 0) < 0 && validStart(head)
	if text && !bytes.HasPrefix(head, []byte("%PDF-")) {
		return kind{}
	}
	for _, m := range magics() {
		if bytes.HasPrefix(head, []byte(m.prefix)) {
			return kind{name: m.name, mime: m.mime, binary: true, image: m.image}
		}
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return kind{name: "data of unknown type", binary: true}
	}
	return kind{}
}

// validStart reports whether the bytes are UTF-8, but for a character that the
// end cuts off.
func validStart(b []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(b) {
			return true
		}
		if len(b) == 0 || utf8.RuneStart(b[len(b)-1]) && utf8.FullRune(b[len(b)-1:]) {
			return false
		}
		b = b[:len(b)-1]
	}
	return utf8.Valid(b)
}
