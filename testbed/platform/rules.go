// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"fmt"
	"slices"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

const (
	// rulesSuffix ends the keys of ConfigMaps that are rule files.
	rulesSuffix = ".rules.yaml"
	// evaluation is how often rules are evaluated, but for slices.
	evaluation = 10 * time.Second
)

// slices of an SLI are counted, so how often they are evaluated is part of what they mean.
var counted = []string{series.SLIBad, series.SLIBadSlice, series.SLIBadVersion, series.SLIBadConfirmed,
	series.SLIBadCritical}

// ruleFiles returns the rule files in ConfigMaps, hastened, by a name that is unique on the hub.
func ruleFiles(configMaps []any) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, object := range configMaps {
		c, ok := object.(*corev1.ConfigMap)
		if !ok {
			continue
		}
		for key, text := range c.Data {
			if !strings.HasSuffix(key, rulesSuffix) {
				continue
			}
			file, err := hasten(text)
			if err != nil {
				return nil, fmt.Errorf("read %s of ConfigMap %s/%s: %w", key, c.Namespace, c.Name, err)
			}
			files[c.Namespace+"."+c.Name+"."+key] = file
		}
	}
	return files, nil
}

// hasten has every group of a rule file evaluated each few seconds, but those that record slices. All others are
// functions of what is known at one time, and so say the same however often they are asked; the hub has them asked
// every 1 to 4 minutes, which spares Prometheus work, and which a fleet that lives for a few minutes cannot wait for.
func hasten(text string) ([]byte, error) {
	var file monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		return nil, fmt.Errorf("decode rules: %w", err)
	}
	for i, group := range file.Groups {
		if slices.ContainsFunc(group.Rules, func(r monitoringv1.Rule) bool {
			return slices.Contains(counted,
				r.Record)
		}) {
			continue
		}
		interval := monitoringv1.Duration(evaluation.String())
		file.Groups[i].Interval = &interval
	}
	return yaml.Marshal(file)
}
