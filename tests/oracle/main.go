// Command oracle prints the results of Go's Kubernetes libraries for an input, for the comparison in tests.
//
// Every subcommand reads frames from standard input and writes a response frame for each to standard output.
// A frame is its length as a little-endian uint32, then that many bytes.
//
//	yaml  a file's bytes                 -> {"documents": [...], "error": null | "..."}
//	cmp   the output of a plugin         -> the same, after both of Argo CD's passes
//	glob  {"pattern": ..., "texts": [..]} -> {"error": null | "...", "matches": [...]}
//	expression  the same as glob, with a regular expression
//	expand  {"NAME": "value", "": text} -> the text, with variables as Argo CD replaces them
//	text  a text -> the nanoseconds of a duration, a time in UTC, and whether it is a DNS label, a DNS subdomain and base64
//	delete  {"object": {...}, "expressions": [..]} -> for each jq path expression, the object after its deletion, as text, or the error
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/gobwas/glob"
	"github.com/itchyny/gojq"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// sniffedBytes is the number of bytes from which the decoder detects JSON or YAML. kubectl and Argo CD use the same number.
const sniffedBytes = 4096

type answer struct {
	Documents []any   `json:"documents"`
	Error     *string `json:"error"`
}

func main() {
	commands := map[string]func([]byte) any{
		"yaml":       func(input []byte) any { return readFile(input) },
		"cmp":        func(input []byte) any { return readPluginOutput(input) },
		"glob":       func(input []byte) any { return matchTexts(input, compileGlob) },
		"expression": func(input []byte) any { return matchTexts(input, compileExpression) },
		"expand":     func(input []byte) any { return expand(input) },
		"delete":     func(input []byte) any { return deleteFields(input) },
		"text":       func(input []byte) any { return meanings(string(input)) },
	}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: oracle yaml|cmp|glob|expression|expand|delete|text")
		os.Exit(2)
	}
	if err := serve(commands[os.Args[1]]); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(reply func([]byte) any) error {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		var size uint32
		if err := binary.Read(in, binary.LittleEndian, &size); errors.Is(err, io.EOF) {
			return out.Flush()
		} else if err != nil {
			return err
		}
		input := make([]byte, size)
		if _, err := io.ReadFull(in, input); err != nil {
			return err
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(reply(input)); err != nil {
			return err
		}
		if err := binary.Write(out, binary.LittleEndian, uint32(text.Len())); err != nil {
			return err
		}
		if _, err := out.Write(text.Bytes()); err != nil {
			return err
		}
		// Flush only when no further frame is buffered: a client that sends many frames reads the responses later.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func newAnswer(documents []any, err error) answer {
	if documents == nil {
		documents = []any{}
	}
	result := answer{Documents: documents}
	if err != nil {
		message := err.Error()
		result.Error = &message
	}
	return result
}

// readFile reads a file as kubectl and Argo CD's directory sources do.
func readFile(input []byte) answer {
	text := transform.NewReader(bytes.NewReader(input), unicode.BOMOverride(unicode.UTF8.NewDecoder()))
	var documents []any
	err := eachDocument(text, func(raw []byte) error {
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return err
		}
		documents = append(documents, value)
		return nil
	})
	return newAnswer(documents, err)
}

// readPluginOutput reads the output of a config management plugin as Argo CD does: the cmp-server splits it into JSON texts, and
// the repo-server parses each of these as YAML again, into an object that must have a kind.
func readPluginOutput(input []byte) answer {
	var texts [][]byte
	err := eachDocument(bytes.NewReader(input), func(raw []byte) error {
		texts = append(texts, raw)
		return nil
	})
	if err != nil {
		return newAnswer(nil, err)
	}
	var documents []any
	for _, text := range texts {
		err := eachDocument(bytes.NewReader(text), func(raw []byte) error {
			var object unstructured.Unstructured
			if err := sigsyaml.Unmarshal(raw, &object); err != nil {
				return err
			}
			documents = append(documents, object.Object)
			return nil
		})
		if err != nil {
			return newAnswer(documents, err)
		}
	}
	return newAnswer(documents, nil)
}

// eachDocument calls use with the JSON text of every document that is not null.
func eachDocument(text io.Reader, use func([]byte) error) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(text, sniffedBytes)
	for {
		var extension runtime.RawExtension
		if err := decoder.Decode(&extension); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		raw := bytes.TrimSpace(extension.Raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		if err := use(raw); err != nil {
			return err
		}
	}
}

type request struct {
	Pattern string   `json:"pattern"`
	Texts   []string `json:"texts"`
}

type matches struct {
	Error   *string `json:"error"`
	Matches []bool  `json:"matches"`
}

// compileGlob compiles a pattern as Argo CD does for the include and exclude patterns of a directory source.
func compileGlob(pattern string) (func(string) bool, error) {
	compiled, err := glob.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return compiled.Match, nil
}

// compileExpression compiles a regular expression as Argo CD does for namespaces. A match that gives up is none.
func compileExpression(pattern string) (func(string) bool, error) {
	compiled, err := regexp2.Compile(pattern, 0)
	if err != nil {
		return nil, err
	}
	return func(text string) bool {
		isMatch, err := compiled.MatchString(text)
		return err == nil && isMatch
	}, nil
}

// matchTexts matches texts with a compiled pattern.
func matchTexts(input []byte, compile func(string) (func(string) bool, error)) matches {
	fail := func(err error) matches {
		message := err.Error()
		return matches{Error: &message, Matches: []bool{}}
	}
	var request request
	if err := json.Unmarshal(input, &request); err != nil {
		return fail(err)
	}
	isMatch, err := compile(request.Pattern)
	if err != nil {
		return fail(err)
	}
	result := matches{Matches: []bool{}}
	for _, text := range request.Texts {
		result.Matches = append(result.Matches, isMatch(text))
	}
	return result
}

// expand replaces variables in a text as Argo CD does in parameters and paths of value files.
func expand(input []byte) string {
	variables := map[string]string{}
	if err := json.Unmarshal(input, &variables); err != nil {
		return err.Error()
	}
	return os.Expand(variables[""], func(name string) string {
		if name == "$" {
			return "$"
		}
		return variables[name]
	})
}

// meanings parses a text as Go and Kubernetes do. A negative duration is none, because the program has no use for one.
func meanings(text string) []any {
	var nanoseconds, at any
	if duration, err := time.ParseDuration(text); err == nil && !strings.HasPrefix(text, "-") {
		nanoseconds = strconv.FormatInt(int64(duration), 10)
	}
	if parsed, err := time.Parse(time.RFC3339, text); err == nil {
		at = parsed.UTC().Format(time.RFC3339Nano)
	}
	_, err := base64.StdEncoding.DecodeString(text)
	return []any{nanoseconds, at, len(validation.IsDNS1123Label(text)) == 0, len(validation.IsDNS1123Subdomain(text)) == 0, err == nil}
}

// deleteFields runs jq path expressions as OCM's work agent and Argo CD do.
func deleteFields(input []byte) any {
	results := []string{}
	var question struct {
		Object      map[string]any
		Expressions []string
	}
	if err := json.Unmarshal(input, &question); err != nil {
		return results
	}
	for _, expression := range question.Expressions {
		results = append(results, deleteField(question.Object, expression))
	}
	return results
}

func deleteField(object map[string]any, expression string) string {
	query, err := gojq.Parse(fmt.Sprintf("del(%s)", expression))
	if err != nil {
		return "syntax: " + err.Error()
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return "syntax: " + err.Error()
	}
	iterator := code.Run(object)
	result, _ := iterator.Next()
	if err, isError := result.(error); isError {
		return "error: " + err.Error()
	}
	if _, hasMore := iterator.Next(); hasMore {
		return "more than one result"
	}
	text, err := json.Marshal(result)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(text)
}
