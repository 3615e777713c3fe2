// Command oracle answers what Go's Kubernetes libraries make of an input, so that tests can compare.
//
// Every sub-command reads frames from standard input and writes one answer frame each to standard output.
// A frame is its length as a little-endian uint32, then that many bytes.
//
//	yaml  a file's bytes                 -> {"documents": [...], "error": null | "..."}
//	cmp   what a plugin printed          -> the same, after both of Argo CD's passes
//	glob  {"pattern": ..., "paths": [..]} -> {"error": null | "...", "matches": [...]}
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gobwas/glob"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// sniffed is how many bytes the decoder looks at to tell JSON from YAML; kubectl and Argo CD agree on it.
const sniffed = 4096

type answer struct {
	Documents []any   `json:"documents"`
	Error     *string `json:"error"`
}

func main() {
	commands := map[string]func([]byte) any{
		"yaml": func(input []byte) any { return readFile(input) },
		"cmp":  func(input []byte) any { return readPluginOutput(input) },
		"glob": func(input []byte) any { return matchPaths(input) },
	}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: oracle yaml|cmp|glob")
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
		// Somebody who sent one frame waits for its answer; somebody who sent many need not be served one by one.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func give(documents []any, err error) answer {
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
	return give(documents, err)
}

// readPluginOutput does what happens to the output of a config management plugin: the cmp-server splits it into
// JSON texts, the repo-server reads each of these as YAML again, into an object that must have a kind.
func readPluginOutput(input []byte) answer {
	var texts [][]byte
	err := eachDocument(bytes.NewReader(input), func(raw []byte) error {
		texts = append(texts, raw)
		return nil
	})
	if err != nil {
		return give(nil, err)
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
			return give(documents, err)
		}
	}
	return give(documents, nil)
}

// eachDocument calls use with the JSON text of every document that is not null.
func eachDocument(text io.Reader, use func([]byte) error) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(text, sniffed)
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

type question struct {
	Pattern string   `json:"pattern"`
	Paths   []string `json:"paths"`
}

type matches struct {
	Error   *string `json:"error"`
	Matches []bool  `json:"matches"`
}

// panicked begins the error of a pattern that the library cannot cope with.
const panicked = "panicked"

// matchPaths matches paths as Argo CD matches the include and exclude patterns of a directory source.
func matchPaths(input []byte) (result matches) {
	fail := func(err error) matches {
		message := err.Error()
		return matches{Error: &message, Matches: []bool{}}
	}
	// Some patterns make gobwas/glob panic.
	defer func() {
		if cause := recover(); cause != nil {
			result = fail(fmt.Errorf("%s: %v", panicked, cause))
		}
	}()
	var asked question
	if err := json.Unmarshal(input, &asked); err != nil {
		return fail(err)
	}
	pattern, err := glob.Compile(asked.Pattern)
	if err != nil {
		return fail(err)
	}
	result = matches{Matches: []bool{}}
	for _, path := range asked.Paths {
		result.Matches = append(result.Matches, pattern.Match(path))
	}
	return result
}
