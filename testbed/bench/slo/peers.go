// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

// The rules that the peers make of the objectives of WriteSpecs; testdata/README.md says how.
//
//go:embed testdata/*.gz
var generated embed.FS

// Operators is how many operators the peers' rules are for.
const Operators = 30

// Versions of the peers whose rules there are.
const (
	SlothVersion = "v0.16.0"
	PyrraVersion = "v0.10.1"
)

// versions of the peers, and of ways to use them.
var versions = map[string]string{sloth: SlothVersion, slothFleet: SlothVersion, pyrra: PyrraVersion}

func peerFile(peer string) string { return peer + "-" + versions[peer] + ".rules.yaml.gz" }

// peerRules are a peer's rules for the first operators.
func peerRules(peer string, operators int) ([]monitoringv1.RuleGroup, error) {
	if operators > Operators {
		return nil, fmt.Errorf("read rules of %s: there are some for %d operators only", peer, Operators)
	}
	packed, err := generated.ReadFile("testdata/" + peerFile(peer))
	if err != nil {
		return nil, fmt.Errorf("read rules of %s: %w", peer, err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack rules of %s: %w", peer, err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpack rules of %s: %w", peer, err)
	}
	var file monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("decode rules of %s: %w", peer, err)
	}
	if peer == slothFleet {
		return file.Groups, nil
	}
	var groups []monitoringv1.RuleGroup
	for _, g := range file.Groups {
		for i := range operators {
			if strings.Contains(g.Name, fleet.Operator(i)) {
				groups = append(groups, g)
			}
		}
	}
	return groups, nil
}

// SlothRules are sloth's rules for one objective of an operator: fleet.Operator of less than Operators, and the name of
// an SLI in sloth's rules. A page has the labels cluster, sloth_id, sloth_service, sloth_slo and sloth_severity.
func SlothRules(operator, sli string) ([]monitoringv1.RuleGroup, error) {
	return rulesOf(sloth, operator, sli, func(group string) bool {
		return strings.HasSuffix(group, "-"+operator+"-"+sli)
	})
}

// PyrraRules are pyrra's rules for one objective of an operator, named as for SlothRules. A page has the labels
// cluster, operator, slo, short, long and exhaustion, and severity="critical".
func PyrraRules(operator, sli string) ([]monitoringv1.RuleGroup, error) {
	return rulesOf(pyrra, operator, sli, func(group string) bool {
		return strings.TrimSuffix(group, "-increase") == operator+"-"+sli
	})
}

// rulesOf are a peer's groups of an objective of an operator, which are those that isOf selects by their names.
func rulesOf(peer, operator, sli string, isOf func(group string) bool) ([]monitoringv1.RuleGroup, error) {
	groups, err := peerRules(peer, Operators)
	if err != nil {
		return nil, err
	}
	groups = slices.DeleteFunc(groups, func(g monitoringv1.RuleGroup) bool { return !isOf(g.Name) })
	if len(groups) == 0 {
		return nil, fmt.Errorf("read rules of %s: there are none of %s for %s", peer, sli, operator)
	}
	return groups, nil
}

// CollectRules packs the rule files that the peers wrote into folders of their names, below from, into the benchmark's
// data, which is in the folder to.
func CollectRules(from, to string) error {
	var errs []error
	for peer := range versions {
		errs = append(errs, collect(filepath.Join(from, peer), to, peer))
	}
	return errors.Join(errs...)
}

func collect(from, to, peer string) error {
	paths, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil || len(paths) == 0 || versions[peer] == "" {
		return fmt.Errorf("collect rules: there are none of %q in %s (%w)", peer, from, err)
	}
	var all monitoringv1.PrometheusRuleSpec
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("collect rules: %w", err)
		}
		var one monitoringv1.PrometheusRuleSpec
		if err := yaml.UnmarshalStrict(text, &one); err != nil {
			return fmt.Errorf("decode %s: %w", path, err)
		}
		all.Groups = append(all.Groups, one.Groups...)
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode rules: %w", err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("pack rules: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("pack rules: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack rules: %w", err)
	}
	if err := os.WriteFile(filepath.Join(to, peerFile(peer)), packed.Bytes(), 0o644); err != nil {
		return fmt.Errorf("pack rules: %w", err)
	}
	return nil
}
