// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page has the commands that show and check which people are paged for which alerts. Package alerts/paging
// makes the configuration; the output is the result of Alertmanager's own code with this configuration.
package page

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command page with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	return command.NewParent("page", "Show who is paged of what, and check it", []string{"pages", "paging"},
		a.AddHubFlags(a.newExplainCommand()), a.AddHubFlags(a.newPreviewCommand()), a.AddHubFlags(a.newLintCommand()),
		a.AddHubFlags(a.newTestCommand()), a.newRunbookCommand())
}

// readHub reads the PagingPolicies and operators of the hub.
func (a *app) readHub(ctx context.Context) (paging.PolicySet, error) {
	h, err := a.Hub()
	if err != nil {
		return paging.PolicySet{}, err
	}
	var policies v1alpha1.PagingPolicyList
	var operators v1alpha1.ManagedOperatorList
	var slos v1alpha1.OperatorSLOList
	for _, list := range []client.ObjectList{&policies, &operators, &slos} {
		if err := h.List(ctx, list); err != nil {
			return paging.PolicySet{}, fmt.Errorf("read the hub: %w", err)
		}
	}
	return paging.PolicySet{Policies: policies.Items, Operators: paging.Operators(operators.Items, slos.Items)}, nil
}

// readFiles reads the PagingPolicies of files; - is standard input. Objects of other kinds are ignored. The namespace
// of -n applies to policies without a namespace.
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
		policies, err := decodePolicies(in, namespace)
		_ = in.Close()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(policies) == 0 {
			return nil, exit.Hintf("use a file with an object of the kind PagingPolicy", "%s has no PagingPolicy", file)
		}
		out = append(out, policies...)
	}
	return out, nil
}

// decodePolicies reads the PagingPolicies from a stream of YAML documents.
func decodePolicies(in io.Reader, namespace string) ([]v1alpha1.PagingPolicy, error) {
	var out []v1alpha1.PagingPolicy
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	line := 1 // the first line of the document, for errors
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

// setDefaults sets the same defaults as the API server.
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

// buildAllRules returns the rules of all alerts.
func buildAllRules() (*slo.Rules, error) {
	return slo.Build(slo.Set{Default: slo.DefaultProfile(), RunbookURL: slo.DefaultRunbooks})
}

const runbookLong = `Show what to do about an alert: its runbook, which is a part of this program and
needs no network.`

func (a *app) newRunbookCommand() *cobra.Command {
	return &cobra.Command{
		Use: "runbook ALERT", Short: "Show the runbook of an alert", Long: runbookLong,
		Example: "  bellwether page runbook BellwetherReleaseSLOBurn",
		Args:    command.OneArg("the alert's name"), ValidArgs: runbooks.Alerts(),
		RunE: func(_ *cobra.Command, args []string) error {
			text, ok := runbooks.Page(args[0])
			if !ok {
				return newUnknownAlertError(args[0])
			}
			a.Say("%s", text)
			return nil
		},
	}
}

// newUnknownAlertError returns an error with the names of all alerts as the hint.
func newUnknownAlertError(name string) error {
	return exit.Hintf("the alerts are "+strings.Join(runbooks.Alerts(), ", "), "there is no alert %q", name)
}
