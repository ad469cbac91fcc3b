// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Kinds of OpenSLO v1, see https://github.com/OpenSLO/OpenSLO. openIgnoredKinds describe alerts and services: no rule
// uses them, so they are not read.
const (
	openKindSLO        = "SLO"
	openKindSLI        = "SLI"
	openKindDataSource = "DataSource"
)

var openIgnoredKinds = []string{"Service", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"}

// The types of this file have all fields of OpenSLO v1, so that a misspelt one is an error. Fields that no rule uses
// may have the type any, and are not checked.

type openHead struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   openMetadata `json:"metadata"`
}

type openMetadata struct {
	Name        string            `json:"name"`
	DisplayName string            `json:"displayName"`
	Labels      map[string]any    `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type openSLO struct {
	openHead
	Spec openSLOSpec `json:"spec"`
}

type openSLOSpec struct {
	Description     string           `json:"description"`
	Service         string           `json:"service"`
	Indicator       *openIndicator   `json:"indicator"`
	IndicatorRef    *string          `json:"indicatorRef"`
	BudgetingMethod string           `json:"budgetingMethod"`
	TimeWindow      []openTimeWindow `json:"timeWindow"`
	Objectives      []openObjective  `json:"objectives"`
	AlertPolicies   []any            `json:"alertPolicies"`
}

type openIndicator struct {
	Metadata openMetadata `json:"metadata"`
	Spec     openSLISpec  `json:"spec"`
}

type openTimeWindow struct {
	Duration  string        `json:"duration"`
	IsRolling bool          `json:"isRolling"`
	Calendar  *openCalendar `json:"calendar"`
}

type openCalendar struct {
	StartTime string `json:"startTime"`
	TimeZone  string `json:"timeZone"`
}

type openObjective struct {
	DisplayName     string         `json:"displayName"`
	Operator        string         `json:"op"`
	Value           *float64       `json:"value"`
	Target          *float64       `json:"target"`
	TargetPercent   *float64       `json:"targetPercent"`
	TimeSliceTarget *float64       `json:"timeSliceTarget"`
	TimeSliceWindow string         `json:"timeSliceWindow"`
	Indicator       *openIndicator `json:"indicator"`
	IndicatorRef    *string        `json:"indicatorRef"`
	CompositeWeight *float64       `json:"compositeWeight"`
}

type openSLI struct {
	openHead
	Spec openSLISpec `json:"spec"`
}

type openSLISpec struct {
	Description     string      `json:"description"`
	ThresholdMetric *openMetric `json:"thresholdMetric"`
	RatioMetric     *openRatio  `json:"ratioMetric"`
}

type openRatio struct {
	Counter bool        `json:"counter"`
	Good    *openMetric `json:"good"`
	Bad     *openMetric `json:"bad"`
	Total   *openMetric `json:"total"`
	Raw     *openMetric `json:"raw"`
	RawType string      `json:"rawType"`
}

type openMetric struct {
	MetricSource openMetricSource `json:"metricSource"`
}

type openMetricSource struct {
	MetricSourceRef string         `json:"metricSourceRef"`
	Type            string         `json:"type"`
	Spec            map[string]any `json:"spec"`
}

type openDataSource struct {
	openHead
	Spec struct {
		Description       string `json:"description"`
		Type              string `json:"type"`
		ConnectionDetails any    `json:"connectionDetails"`
	} `json:"spec"`
}

// decodeOpen decodes an object of OpenSLO and refuses unknown fields, and what check refuses.
func decodeOpen[T any](text []byte, check func(T) error) (T, error) {
	var object T
	err := untrusted.UnmarshalStrict(text, &object)
	if err == nil {
		err = check(object)
	}
	if err != nil {
		return object, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return object, nil
}

func checkOpenHead(h openHead) error { return checkOpenName("metadata.name", h.Metadata.Name) }

func checkOpenName(field, name string) error {
	if name == "" {
		return fmt.Errorf("%s is required", field)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s: %q: %s", field, name, strings.Join(problems, "; "))
	}
	return nil
}

func checkOpenDataSource(s openDataSource) error {
	if err := checkOpenHead(s.openHead); err != nil {
		return err
	}
	if s.Spec.Type == "" {
		return errors.New("spec.type is required")
	}
	return nil
}

func checkOpenSLI(s openSLI) error {
	return errors.Join(checkOpenHead(s.openHead), checkOpenIndicator("spec", s.Spec))
}

func checkOpenIndicator(field string, s openSLISpec) error {
	if (s.ThresholdMetric == nil) == (s.RatioMetric == nil) {
		return fmt.Errorf("%s: write either thresholdMetric or ratioMetric", field)
	}
	if s.ThresholdMetric != nil {
		return checkOpenMetric(field+".thresholdMetric", s.ThresholdMetric)
	}
	field += ".ratioMetric"
	r := s.RatioMetric
	switch {
	case (r.Total == nil) == (r.Raw == nil):
		return fmt.Errorf("%s: write either total or raw", field)
	case r.Raw != nil && (r.Good != nil || r.Bad != nil), r.Good != nil && r.Bad != nil:
		return fmt.Errorf("%s: write only one of raw, good and bad", field)
	case r.Total != nil && r.Good == nil && r.Bad == nil:
		return fmt.Errorf("%s: total needs good or bad", field)
	case r.Raw != nil && r.RawType != openRawSuccess && r.RawType != openRawFailure:
		return fmt.Errorf("%s.rawType: %q: write %s or %s", field, r.RawType, openRawSuccess, openRawFailure)
	}
	return errors.Join(checkOpenMetric(field+".total", r.Total), checkOpenMetric(field+".good", r.Good),
		checkOpenMetric(field+".bad", r.Bad), checkOpenMetric(field+".raw", r.Raw))
}

// What a raw ratio counts.
const (
	openRawSuccess = "success"
	openRawFailure = "failure"
)

func checkOpenMetric(field string, m *openMetric) error {
	if m == nil || len(m.MetricSource.Spec) > 0 {
		return nil
	}
	return fmt.Errorf("%s.metricSource.spec is required", field)
}

func checkOpenSLO(s openSLO) error {
	err := errors.Join(checkOpenHead(s.openHead), checkOpenBudget(s.Spec), checkOpenIndicators(s.Spec))
	for i, w := range s.Spec.TimeWindow {
		err = errors.Join(err, checkOpenWindow(fmt.Sprintf("spec.timeWindow[%d]", i), w))
	}
	for i, o := range s.Spec.Objectives {
		err = errors.Join(err, checkOpenObjective(fmt.Sprintf("spec.objectives[%d]", i), o, s.Spec.BudgetingMethod))
	}
	return err
}

func checkOpenBudget(s openSLOSpec) error {
	switch {
	case s.Service == "":
		return errors.New("spec.service is required")
	case s.BudgetingMethod != openOccurrences && s.BudgetingMethod != openTimeslices &&
		s.BudgetingMethod != openRatioTimeslices:
		return fmt.Errorf("spec.budgetingMethod: %q: write %s, %s or %s", s.BudgetingMethod, openOccurrences,
			openTimeslices, openRatioTimeslices)
	case len(s.TimeWindow) != 1:
		return errors.New("spec.timeWindow: write one")
	}
	return nil
}

// How OpenSLO counts a budget.
const (
	openOccurrences     = "Occurrences"
	openTimeslices      = "Timeslices"
	openRatioTimeslices = "RatioTimeslices"
)

func checkOpenIndicators(s openSLOSpec) error {
	has := s.Indicator != nil || s.IndicatorRef != nil
	switch {
	case has == s.isComposite():
		return errors.New("spec: write indicator or indicatorRef, either of the SLO or of its objectives")
	case s.Indicator != nil && s.IndicatorRef != nil:
		return errors.New("spec: write either indicator or indicatorRef")
	case s.IndicatorRef != nil:
		return checkOpenName("spec.indicatorRef", *s.IndicatorRef)
	case s.Indicator != nil:
		return errors.Join(checkOpenName("spec.indicator.metadata.name", s.Indicator.Metadata.Name),
			checkOpenIndicator("spec.indicator.spec", s.Indicator.Spec))
	}
	return nil
}

// isComposite reports whether the objectives have indicators of their own.
func (s openSLOSpec) isComposite() bool {
	for _, o := range s.Objectives {
		if o.Indicator != nil || o.IndicatorRef != nil {
			return true
		}
	}
	return false
}

// openDuration is a shorthand of OpenSLO: minutes, hours, days, weeks, months, quarters or years.
var openDuration = regexp.MustCompile(`^[0-9]+[mhdwMQY]$`)

func checkOpenDuration(field, text string) error {
	if openDuration.MatchString(text) {
		return nil
	}
	return fmt.Errorf("%s: %q: write a number and one of the units m, h, d, w, M, Q and Y, as in 30d", field, text)
}

func checkOpenWindow(field string, w openTimeWindow) error {
	if w.IsRolling == (w.Calendar != nil) {
		return fmt.Errorf("%s: write either isRolling: true or calendar", field)
	}
	return checkOpenDuration(field+".duration", w.Duration)
}

func checkOpenObjective(field string, o openObjective, method string) error {
	switch {
	case o.Target != nil && o.TargetPercent != nil:
		return fmt.Errorf("%s: write either target or targetPercent", field)
	case o.Target == nil && o.TargetPercent == nil:
		return fmt.Errorf("%s: target or targetPercent is required", field)
	case o.Target != nil && (*o.Target < 0 || *o.Target >= 1):
		return fmt.Errorf("%s.target: %v: write at least 0 and less than 1", field, *o.Target)
	case o.TargetPercent != nil && (*o.TargetPercent < 0 || *o.TargetPercent >= 100):
		return fmt.Errorf("%s.targetPercent: %v: write at least 0 and less than 100", field, *o.TargetPercent)
	}
	if method == openOccurrences {
		return nil
	}
	if t := o.TimeSliceTarget; method == openTimeslices && (t == nil || *t <= 0 || *t > 1) {
		return fmt.Errorf("%s.timeSliceTarget: %s needs a number above 0 and at most 1", field, openTimeslices)
	}
	return checkOpenDuration(field+".timeSliceWindow", o.TimeSliceWindow)
}
