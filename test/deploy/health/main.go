// Computes the health of objects as Flux does, with kstatus and with a CEL expression, and as Argo CD does, with a Lua script. Also removes
// the differences that Argo CD ignores by field managers. Each line of the input is an object, with the expression, the script, and the
// object of Git with the managers if there are any. Each line of the output is the result.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/argoproj/argo-cd/v3/util/argo/managedfields"
	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type question struct {
	Object json.RawMessage `json:"object"`
	Lua    string          `json:"lua"`
	CEL    string          `json:"cel"`
	// Target is the object of Git.
	Target   json.RawMessage `json:"target"`
	Managers []string        `json:"managers"`
}

// compared has both objects without the fields that differ and that one of the managers owns.
type compared struct {
	Live   *unstructured.Unstructured `json:"live"`
	Target *unstructured.Unstructured `json:"target"`
}

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type answer struct {
	Kstatus health  `json:"kstatus"`
	ArgoCD  *health `json:"argoCd,omitempty"`
	CEL     *bool   `json:"cel,omitempty"`
	// Compared is absent without an object of Git.
	Compared *compared `json:"compared,omitempty"`
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 16<<20)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		result, err := check(input.Bytes())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := output.Encode(result); err != nil {
			os.Exit(1)
		}
	}
}

func check(line []byte) (*answer, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	// Numbers become int64, as in the objects that both tools read.
	if err := object.UnmarshalJSON(asked.Object); err != nil {
		return nil, err
	}
	computed, err := status.Compute(object)
	if err != nil {
		return nil, err
	}
	result := &answer{Kstatus: health{Status: string(computed.Status), Message: computed.Message}}
	if asked.Lua != "" {
		if result.ArgoCD, err = run(object, asked.Lua); err != nil {
			return nil, err
		}
	}
	if asked.CEL != "" {
		if result.CEL, err = evaluate(object, asked.CEL); err != nil {
			return nil, err
		}
	}
	if asked.Target != nil {
		result.Compared, err = compare(object, asked.Target, asked.Managers)
	}
	return result, err
}

func compare(live *unstructured.Unstructured, text json.RawMessage, managers []string) (*compared, error) {
	target := &unstructured.Unstructured{}
	if err := target.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	// Without the schema of the API server, a list is one value. The fields that the agent writes are in no list.
	seen, wanted, err := managedfields.Normalize(live, target, managers, nil)
	return &compared{Live: seen, Target: wanted}, err
}

// evaluate has the fields of the object as variables, as healthCheckExprs of a Kustomization.
func evaluate(object *unstructured.Unstructured, expression string) (*bool, error) {
	variables := []cel.EnvOption{}
	for _, field := range []string{"metadata", "spec", "status"} {
		variables = append(variables, cel.Variable(field, cel.DynType))
	}
	environment, err := cel.NewEnv(variables...)
	if err != nil {
		return nil, err
	}
	compiled, issues := environment.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := environment.Program(compiled)
	if err != nil {
		return nil, err
	}
	result, _, err := program.Eval(object.Object)
	if err != nil {
		return nil, err
	}
	isCurrent, isBool := result.Value().(bool)
	if !isBool {
		return nil, fmt.Errorf("the expression is no condition: %v", result)
	}
	return &isCurrent, nil
}

// run has only the libraries that Argo CD loads for a script from argocd-cm, and its time limit.
func run(object *unstructured.Unstructured, script string) (*health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	libraries := map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable}
	for name, open := range libraries {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(limited)
	state.SetGlobal("obj", toLua(state, object.Object))
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	text, err := luajson.Encode(state.Get(-1))
	if err != nil {
		return nil, err
	}
	result := &health{}
	return result, json.Unmarshal(text, result)
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		list := state.CreateTable(len(value), 0)
		for _, item := range value {
			list.Append(toLua(state, item))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	}
	return lua.LNil
}
