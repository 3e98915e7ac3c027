// The mirror, by hand in Go: the standard library alone.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   any             `json:"error,omitempty"`
	Within  json.RawMessage `json:"within,omitempty"`
}

type incoming struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

type service struct {
	line    net.Conn
	writing sync.Mutex
	last    int
	waiting sync.Map
}

func (s *service) send(m message) {
	m.Version = "2.0"
	text, _ := json.Marshal(m)
	s.writing.Lock()
	defer s.writing.Unlock()
	s.line.Write(append(text, '\n'))
}

func (s *service) call(within json.RawMessage, method string, params any) (json.RawMessage, error) {
	answer := make(chan incoming, 1)
	s.writing.Lock()
	s.last++
	id := strconv.Itoa(s.last)
	s.writing.Unlock()
	s.waiting.Store(id, answer)
	s.send(message{ID: json.RawMessage(id), Method: method, Params: params, Within: within})
	got := <-answer
	if got.Error != nil {
		return nil, fmt.Errorf("%s", got.Error.Message)
	}
	return got.Result, nil
}

func (s *service) hook(id json.RawMessage, params json.RawMessage) (any, error) {
	var asked struct {
		Output struct{ Arguments struct{ Command string } }
	}
	json.Unmarshal(params, &asked)
	words := asked.Output.Arguments.Command
	switch {
	case strings.Contains(words, "forbidden"):
		return map[string]any{"verdict": "reject", "reason": "no"}, nil
	case strings.Contains(words, "ask me"):
		return map[string]any{"verdict": "ask", "question": "sure?"}, nil
	case strings.Contains(words, "please "):
		changed := map[string]any{"command": strings.Replace(words, "please ", "", 1)}
		return map[string]any{"output": map[string]any{"arguments": changed}}, nil
	case strings.Contains(words, "count"):
		value, err := s.call(id, "service.state.get", map[string]any{"key": "n"})
		if err != nil {
			return nil, err
		}
		text := "0"
		json.Unmarshal(value, &text)
		number, _ := strconv.Atoi(text)
		_, err = s.call(id, "service.state.set", map[string]any{"key": "n", "value": strconv.Itoa(number + 1)})
		return nil, err
	}
	return nil, nil
}

func (s *service) answer(asked incoming) {
	if asked.Method == "shutdown" {
		os.Exit(0)
	}
	if asked.ID == nil {
		return
	}
	var result any
	var err error
	switch asked.Method {
	case "hook":
		result, err = s.hook(asked.ID, asked.Params)
	case "tool":
		var given struct{ Arguments struct{ Text string } }
		json.Unmarshal(asked.Params, &given)
		s.send(message{Method: "progress", Params: map[string]any{"id": asked.ID, "text": "half"}})
		result = map[string]any{"text": given.Arguments.Text}
	case "command":
		var given struct{ Arguments []string }
		json.Unmarshal(asked.Params, &given)
		result = map[string]any{"output": "hello " + given.Arguments[0] + "\n"}
	}
	if err != nil {
		s.send(message{ID: asked.ID, Error: map[string]any{"code": -32000, "message": err.Error()}})
		return
	}
	if result == nil {
		result = json.RawMessage("null")
	}
	s.send(message{ID: asked.ID, Result: result})
}

func main() {
	line, err := net.Dial("unix", os.Getenv("OPERANT_SERVICE_SOCKET"))
	if err != nil {
		panic(err)
	}
	s := &service{line: line}
	go func() {
		schema := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}}
		_, err := s.call(nil, "register", map[string]any{
			"protocol": "svc/1",
			"token":    os.Getenv("OPERANT_SERVICE_TOKEN"),
			"hooks":    []any{map[string]any{"point": "tool.before"}},
			"tools":    []any{map[string]any{"name": "echo", "description": "Say it back.", "schema": schema}},
			"commands": []any{map[string]any{"name": "greet", "description": "Greet somebody."}},
			"events":   []any{"turn.ended"},
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	lines := bufio.NewScanner(line)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var got incoming
		if json.Unmarshal(lines.Bytes(), &got) != nil {
			os.Exit(1)
		}
		if got.Method != "" {
			go s.answer(got)
		} else if answer, there := s.waiting.LoadAndDelete(string(got.ID)); there {
			answer.(chan incoming) <- got
		}
	}
}
