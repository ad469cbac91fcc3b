// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page holds the commands about who is paged, and of what. Package
// alerts/paging decides; what is shown is what Alertmanager's own code makes of it.
package page

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/runbooks"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command with everything below it.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.Parent("page", "Show who is paged of what, and check it", []string{"pages", "paging"},
		a.OnHub(a.explainCommand()), a.OnHub(a.previewCommand()), a.OnHub(a.lintCommand()), a.OnHub(a.testCommand()),
		a.runbookCommand())
}

// folder is where secrets are in a configuration that is only looked at.
const folder = "/etc/alertmanager/config"

// hubPaging is what the hub has about paging.
type hubPaging struct {
	policies  []v1alpha1.PagingPolicy
	operators []paging.Operator
}

// read reads the hub's policies and operators.
func (a *app) read(ctx context.Context) (hubPaging, error) {
	h, err := a.Hub()
	if err != nil {
		return hubPaging{}, err
	}
	var policies v1alpha1.PagingPolicyList
	var operators v1alpha1.ManagedOperatorList
	var slos v1alpha1.OperatorSLOList
	for _, list := range []client.ObjectList{&policies, &operators, &slos} {
		if err := h.List(ctx, list); err != nil {
			return hubPaging{}, fmt.Errorf("read the hub: %w", err)
		}
	}
	return hubPaging{policies.Items, paging.Operators(operators.Items, slos.Items)}, nil
}

// with are the policies with those of files in place of the ones with the same name.
func (p hubPaging) with(more []v1alpha1.PagingPolicy) hubPaging {
	out := hubPaging{operators: p.operators, policies: slices.Clone(more)}
	for _, old := range p.policies {
		i := slices.IndexFunc(more, func(o v1alpha1.PagingPolicy) bool {
			return client.ObjectKeyFromObject(&o) == client.ObjectKeyFromObject(&old)
		})
		if i < 0 {
			out.policies = append(out.policies, old)
		} else {
			out.policies[i].Status = old.Status
		}
	}
	return out
}

// hub is what the hub said of itself in the statuses of its policies.
func (p hubPaging) hub() paging.Hub {
	out := paging.Hub{Operators: p.operators}
	for i := range p.policies {
		of := &p.policies[i]
		if of.Status.Configuration == nil {
			continue
		}
		out.Objects = out.Objects || of.Status.Configuration.Kind == monitoring.AlertmanagerConfigKind
		if of.Spec.Scope == v1alpha1.PagingFleet {
			out.Namespace = of.Namespace
		}
	}
	return out
}

// problems are what is wrong with policies, by NAMESPACE/NAME, and the names in order.
func (p hubPaging) problems() (of map[string]string, names []string) {
	of = map[string]string{}
	for key, problem := range paging.Check(p.policies, p.hub()) {
		of[key.String()] = problem.Message
	}
	return of, slices.Sorted(maps.Keys(of))
}

// config makes the configuration of the policies that are right.
func (p hubPaging) config() ([]byte, error) {
	problems := paging.Check(p.policies, p.hub())
	var all []paging.Policy
	for i := range p.policies {
		if _, wrong := problems[client.ObjectKeyFromObject(&p.policies[i])]; !wrong {
			all = append(all, paging.PolicyOf(&p.policies[i]))
		}
	}
	paging.Assign(p.operators, all)
	text, err := paging.Config(all, folder)
	if errors.Is(err, paging.ErrNoFleetPolicy) {
		return nil, exit.Hint(err, "create a PagingPolicy with spec.scope Fleet; docs/guides/paging.md has an example")
	}
	return text, err
}

// readFiles reads the PagingPolicies of files; - is standard input. Other kinds are
// ignored. Policies without a namespace are in that of -n.
func (a *app) readFiles(files []string) ([]v1alpha1.PagingPolicy, error) {
	namespace, err := a.Namespace()
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.PagingPolicy
	for _, file := range files {
		in := io.NopCloser(a.Streams.In)
		if file != "-" {
			if in, err = os.Open(file); err != nil {
				return nil, fmt.Errorf("read policies: %w", err)
			}
		}
		of, err := decode(in, namespace)
		_ = in.Close()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(of) == 0 {
			return nil, exit.Hintf("use a file with an object of the kind PagingPolicy", "%s has no PagingPolicy", file)
		}
		out = append(out, of...)
	}
	return out, nil
}

func decode(in io.Reader, namespace string) ([]v1alpha1.PagingPolicy, error) {
	var out []v1alpha1.PagingPolicy
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	line := 1
	for next := 1; ; line = next {
		text, err := documents.Read()
		next += bytes.Count(text, []byte("\n")) + 1 // the separator
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var head metav1.TypeMeta
		err = untrusted.AtLine(line, text, func(text []byte) error { return untrusted.Unmarshal(text, &head) })
		if err != nil {
			return nil, err
		}
		if head.Kind != "PagingPolicy" {
			continue
		}
		var p v1alpha1.PagingPolicy
		err = untrusted.AtLine(line, text, func(text []byte) error { return untrusted.UnmarshalStrict(text, &p) })
		if err != nil {
			return nil, err
		}
		if p.Namespace == "" {
			p.Namespace = namespace
		}
		setDefaults(&p.Spec)
		out = append(out, p)
	}
}

// setDefaults does what the API server does.
func setDefaults(s *v1alpha1.PagingPolicySpec) {
	if s.Scope == "" {
		s.Scope = v1alpha1.PagingNamespace
	}
	if s.SingleCluster == "" {
		s.SingleCluster = v1alpha1.SingleClusterCritical
	}
	if s.Tickets != nil && s.Tickets.Hours != nil && len(s.Tickets.Hours.Days) == 0 {
		s.Tickets.Hours.Days = []v1alpha1.Weekday{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}
	}
}

// allRules make every alert there is.
func allRules() (*slo.Rules, error) {
	return slo.Build(slo.Set{Default: slo.DefaultProfile(), RunbookURL: slo.DefaultRunbooks})
}

const runbookLong = `Show what to do about an alert: its runbook, which is a part of this program and
needs no network.`

func (a *app) runbookCommand() *cobra.Command {
	return &cobra.Command{
		Use: "runbook ALERT", Short: "Show the runbook of an alert", Long: runbookLong,
		Example: "  bellwether page runbook BellwetherReleaseSLOBurn",
		Args:    command.OneArg("the alert's name"), ValidArgs: runbooks.Alerts(),
		RunE: func(_ *cobra.Command, args []string) error {
			text, known := runbooks.Page(args[0])
			if !known {
				return noAlert(args[0])
			}
			a.Say("%s", text)
			return nil
		},
	}
}

// noAlert says which alerts there are.
func noAlert(name string) error {
	return exit.Hintf("the alerts are "+strings.Join(runbooks.Alerts(), ", "), "there is no alert %q", name)
}
