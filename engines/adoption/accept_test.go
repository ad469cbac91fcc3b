// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

// TestBlocking checks that accepted findings do not block, and that only acceptable findings can be accepted.
func TestBlocking(t *testing.T) {
	t.Parallel()
	finding := func(class adoption.Class, reason string) adoption.Finding {
		return adoption.Finding{Class: class, Reason: reason}
	}
	all := adoption.Verdict{Findings: []adoption.Finding{
		finding(adoption.Conflict, "ManyOperatorGroups"), finding(adoption.NeedsDecision, "GitOps"),
		finding(adoption.NeedsDecision, "ConfigDiffers"), finding(adoption.Unknown, "UnderWay"),
		finding(adoption.Eligible, "Config"),
	}}
	for name, test := range map[string]struct {
		verdict adoption.Verdict
		accept  []v1alpha1.AcceptedFinding
		want    string
	}{
		"nothing is accepted": {all, nil, "ManyOperatorGroups GitOps ConfigDiffers UnderWay"},
		"one is accepted": {all, []v1alpha1.AcceptedFinding{adoption.GitOps},
			"ManyOperatorGroups ConfigDiffers UnderWay"},
		"nobody can accept a conflict, or what is not acceptable": {all,
			[]v1alpha1.AcceptedFinding{"ManyOperatorGroups", "ConfigDiffers", "UnderWay"},
			"ManyOperatorGroups GitOps ConfigDiffers UnderWay"},
		"eligible": {adoption.Verdict{Findings: []adoption.Finding{finding(adoption.Eligible, "Eligible")}}, nil, ""},
		"managed":  {adoption.Verdict{Findings: []adoption.Finding{finding(adoption.Managed, "Managed")}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range adoption.ListBlocking(test.verdict, test.accept) {
				got = append(got, f.Reason)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("blocking (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAcceptableIsWhatTheAPIAccepts compares the list with the definitions of the kinds.
func TestAcceptableIsWhatTheAPIAccepts(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, reason := range adoption.ListAcceptable() {
		want.WriteString(string(reason) + " ")
	}
	for _, kind := range []string{"managedoperators", "operatorrollouts", "operatorinstalls"} {
		text, err := os.ReadFile("../../charts/bellwether/files/crds/bellwether.dev_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`enum:\n((?: +- [A-Za-z]+\n)+) +type: string\n +maxItems: \d+\n +type: array\n`+
			` +x-kubernetes-list-type: set\n +type: object\n`).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s: no spec.adopt.accept", kind)
		}
		for _, f := range found {
			got := strings.Join(strings.Fields(strings.ReplaceAll(f[1], "- ", "")), " ") + " "
			if diff := cmp.Diff(want.String(), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", kind, diff)
			}
		}
	}
}

// TestAcceptedFindingsSayHow checks that each acceptable finding says how to accept it.
func TestAcceptedFindingsSayHow(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for reason, change := range map[v1alpha1.AcceptedFinding]func(*situation){
		adoption.CSVEdited:           func(s *situation) { s.csv.EditedBy = []string{"kubectl-edit"} },
		adoption.ChannelNotInCatalog: func(s *situation) { s.sub.Channel = "fast" },
		adoption.Dependency:          func(s *situation) { s.sub.Dependency = true },
		adoption.GitOps:              func(s *situation) { s.sub.GitOps = "Helm" },
		adoption.PlanPending: func(s *situation) {
			s.plan(v1alpha1.FoundInstallPlan{Name: "a", Phase: "RequiresApproval", CSVs: []string{s.csv.Name}})
		},
		adoption.ScaledToZero:    func(s *situation) { s.csv.Deployments[0].Replicas = 0 },
		adoption.SharedNamespace: func(s *situation) { s.another("echo", "other") },
	} {
		s := newSituation()
		change(s)
		f := s.judge().Findings[0]
		found[f.Reason] = true
		if f.Reason != string(reason) || !f.IsAcceptable() ||
			!strings.Contains(strings.Join(f.Choices, "\n"), "Add "+f.Reason+" to spec.adopt.accept") {
			t.Errorf("%s: %+v", reason, f)
		}
	}
	for _, reason := range adoption.ListAcceptable() {
		if !found[string(reason)] {
			t.Errorf("no case for %s", reason)
		}
	}
}

// TestConfigIsCompared checks that settings are equal if OLM would not change a Deployment.
func TestConfigIsCompared(t *testing.T) {
	t.Parallel()
	env := func(names ...string) *v1alpha1.OperatorConfig {
		c := &v1alpha1.OperatorConfig{}
		for _, name := range names {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: "1"})
		}
		return c
	}
	cpu := func(text string) *v1alpha1.OperatorConfig {
		return &v1alpha1.OperatorConfig{Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(text)}}}
	}
	for name, test := range map[string]struct {
		found, wanted *v1alpha1.OperatorConfig
		// differs names the fields; empty: they are equal.
		differs string
	}{
		"none":              {nil, nil, ""},
		"empty is none":     {nil, &v1alpha1.OperatorConfig{}, ""},
		"equal":             {env("A", "B"), env("A", "B"), ""},
		"only there":        {env("A"), nil, "env"},
		"only in the other": {nil, env("A"), "env"},
		"another order":     {env("A", "B"), env("B", "A"), "env"},
		"the same quantity": {cpu("1"), cpu("1000m"), ""},
		"another quantity":  {cpu("1"), cpu("2"), "resources"},
		"empty resources are no nil": {&v1alpha1.OperatorConfig{Resources: &corev1.ResourceRequirements{}}, nil,
			"resources"},
		"several": {&v1alpha1.OperatorConfig{NodeSelector: map[string]string{"a": "b"},
			Tolerations: []corev1.Toleration{{Key: "a"}}}, nil, "nodeSelector, spec.config.tolerations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSituation()
			s.wanted("echo", true).Config = test.wanted
			s.sub.Settings = v1alpha1.SettingsOf(test.found)
			if test.found != nil {
				s.sub.Config = []string{"env"}
			}
			v := s.judge()
			want := adoption.Finding{Class: adoption.Eligible, Reason: "Eligible"}
			if test.differs != "" {
				want = adoption.Finding{Class: adoption.NeedsDecision, Reason: "ConfigDiffers"}
			}
			if f := v.Findings[0]; f.Class != want.Class || f.Reason != want.Reason ||
				!strings.Contains(f.Message, test.differs) || f.IsAcceptable() {
				t.Errorf("%+v, want %+v with %q", f, want, test.differs)
			}
		})
	}
}
