// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/alerts/runbooks"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
)

// TestRemediesNameRealCommands parses each command of the table of remedies
// with the existing commands and flags.
func TestRemediesNameRealCommands(t *testing.T) {
	found := 0
	names := remedy.Names{Cluster: "prod-1", Operator: "echo", Rollout: "echo-2", Catalog: "main",
		HubNamespace: "fleet",
		Namespace:    "echo", Package: "echo-operator"}
	for _, r := range slices.Concat(remedy.All(), remedy.Observed()) {
		for _, a := range r.For("", names) {
			arguments, ours := strings.CutPrefix(a.Command, "bellwether ")
			if !ours {
				continue
			}
			found++
			if err := parse(t, strings.Fields(arguments)); err != nil {
				t.Errorf("%s: %s: %v", r.Reason, a.Command, err)
			}
		}
	}
	if found < 20 {
		t.Errorf("the table has only %d commands of bellwether", found)
	}
}

var (
	fence     = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")
	inline    = regexp.MustCompile("`(bellwether [a-z][^`\n]*)`")
	mention   = regexp.MustCompile(`^bellwether [a-z -]*$`) // a command's name in a sentence
	quoted    = regexp.MustCompile(`"[^"]*"`)
	resources = regexp.MustCompile(`(?:^| )kubectl (?:.* )?(?:get|describe|edit|patch|delete) ([a-z.,]+)`)
)

// TestRunbooksNameRealCommands parses each command line of the runbooks: one of
// bellwether with the commands, flags and arguments that there are. The kinds in one
// of kubectl are those of Bellwether's CRDs, or of Kubernetes, OLM and others that the
// pages need.
func TestRunbooksNameRealCommands(t *testing.T) {
	kinds := knownKinds(t)
	ours, others := 0, 0
	for _, alert := range runbooks.Alerts() {
		page, _ := runbooks.Page(alert)
		for _, line := range commandLines(page) {
			if arguments, ok := strings.CutPrefix(line, "bellwether "); ok {
				ours++
				if err := parse(t, strings.Fields(quoted.ReplaceAllString(arguments, "TEXT"))); err != nil {
					t.Errorf("%s.md: %s: %v", alert, line, err)
				}
			}
			if match := resources.FindStringSubmatch(line); match != nil {
				others++
				for _, kind := range strings.Split(match[1], ",") {
					if !kinds[kind] {
						t.Errorf("%s.md: %s: unknown kind %s", alert, line, kind)
					}
				}
			}
		}
	}
	if ours < 100 || others < 100 {
		t.Errorf("found only %d commands of bellwether and %d of kubectl", ours, others)
	}
}

// commandLines are the lines in code blocks, and the commands of bellwether in the
// text, without comments and the rest of pipes.
func commandLines(page string) []string {
	var out []string
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		out = append(out, strings.Split(block[1], "\n")...)
	}
	for _, match := range inline.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		if mention.MatchString(match[1]) {
			continue
		}
		out = append(out, match[1])
	}
	for i := range out {
		line, _, _ := strings.Cut(out[i], " #")
		line, _, _ = strings.Cut(line, " | ")
		line, _, _ = strings.Cut(line, " > ")
		out[i] = strings.TrimSpace(line)
	}
	return out
}

// knownKinds returns the names of kinds that kubectl accepts.
func knownKinds(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, name := range strings.Fields("pods pod nodes events deploy deployments services endpointslices secret " +
		"secrets configmap configmaps leases lease persistentvolumeclaims persistentvolumeclaim networkpolicies " +
		"validatingwebhookconfigurations validatingwebhookconfiguration mutatingwebhookconfigurations csv " +
		"installplans catalogsources.operators.coreos.com podmonitors prometheusrules certificates " +
		"certificaterequests certificate") {
		known[name] = true
	}
	definitions, err := charts.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range definitions {
		for _, field := range []string{"plural", "singular"} {
			name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", field)
			known[name] = true
		}
	}
	return known
}

func parse(t *testing.T, args []string) error {
	t.Helper()
	c, rest, err := New(command.NewEnv("bellwether", genericiooptions.NewTestIOStreamsDiscard())).Find(args)
	if err != nil {
		return err
	}
	// Words in capital letters represent values of the user.
	for i, value := range rest {
		if i > 0 && rest[i-1] == "--target" && value == "PERCENT" {
			rest[i] = "99.9"
		}
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}
