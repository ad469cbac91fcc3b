// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"k8s.io/apimachinery/pkg/types"
)

// Objective is a target of one SLI.
type Objective struct {
	// SLI is a name of SLIs, probe:NAME, or the name of an own SLI.
	// In a Set's default, "probe:" represents every existing probe.
	SLI    string
	Target PPM
	// Period is the budget's period. Zero is DefaultPeriod.
	Period time.Duration
	// Alerts selects the alerts about the objective. Empty: all.
	Alerts Alerting
	// Thresholds replace the values above which the SLI is bad.
	Thresholds Thresholds
}

// period returns the budget period, with the default for zero.
func (o Objective) period() time.Duration {
	if o.Period == 0 {
		return DefaultPeriod
	}
	return o.Period
}

// Operator is an operator with objectives that differ from the default.
type Operator struct {
	// Namespace and Name identify the ManagedOperator. They are the labels operator_namespace and operator.
	Namespace, Name string
	// Team is the team that gets the alerts. It is a label of the alerts.
	Team string
	// Criticality is how important the operator is. It is an annotation of alerts. Empty: Standard.
	Criticality string
	// Objectives replace the objectives of the default with the same SLI,
	// and add to them. SLIs that are named here are expected to have slices.
	Objectives []Objective
	// Without are SLIs of the default that the operator does not have.
	Without []string
	// Own are further SLIs. Each of them needs an objective.
	Own []OwnSLI
	// Labels and Annotations are added to the operator's alerts. CheckLabel and CheckAnnotation must accept them.
	Labels, Annotations map[string]string
	// Limits are the limits of the SLI custom-resources, which has no slices without limits.
	Limits []Limit
}

// ID returns the operator's namespace and name.
func (op Operator) ID() types.NamespacedName {
	return types.NamespacedName{Namespace: op.Namespace, Name: op.Name}
}

// Set contains all objectives of a fleet.
type Set struct {
	// Default are the objectives of every operator in the inventory.
	Default []Objective
	// Operators are the operators that differ from the default.
	Operators []Operator
	// Named are operators that users wrote objectives for and that are therefore
	// expected in the inventory: an alert reports each named operator that is missing.
	Named []types.NamespacedName
	// RunbookURL is the folder with a page for each alert, such as DefaultRunbooks.
	// The links add ALERT.md, and #SLI if the alert is about an SLI. Empty: no links.
	RunbookURL string
	// DashboardURL is the start of the links to the dashboard. The links add its variables. Empty: no links.
	DashboardURL string
	// WithoutAlerts are names from SwitchableAlerts of alerts that are disabled.
	WithoutAlerts []string
	// Blame configures when a release is blamed.
	Blame Blame
}

// DefaultProfile returns the objectives that suit any operator: every SLI with its default target, over 30 days.
func DefaultProfile() []Objective {
	var out []Objective
	for _, s := range SLIs() {
		out = append(out, Objective{SLI: s.Name, Target: s.Target})
	}
	return out
}

// maxName is the maximum length of operator names in bytes, as in Kubernetes.
const maxName = 253

var ownName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$`)

// Check returns all errors in a set, joined. Rules can be made from a set without errors.
func (s Set) Check() error { return errors.Join(s.check()...) }

// check returns all errors in a set.
func (s Set) check() []error {
	var errs []error
	for _, o := range s.Default {
		if err := checkObjective(o, nil); err != nil {
			errs = append(errs, fmt.Errorf("default: %w", err))
		}
	}
	errs = append(errs, checkRepeated("default", s.Default)...)
	for _, name := range s.WithoutAlerts {
		if err := CheckAlert(name); err != nil {
			errs = append(errs, err)
		}
	}
	if err := CheckRunbookURL(s.RunbookURL); err != nil {
		errs = append(errs, err)
	}
	listed := map[types.NamespacedName]bool{}
	for _, op := range s.Operators {
		if listed[op.ID()] {
			errs = append(errs, fmt.Errorf("%w %q: it is listed twice", ErrOperator, op.ID()))
		}
		listed[op.ID()] = true
		for _, err := range op.check() {
			errs = append(errs, fmt.Errorf("operator %s: %w", op.ID(), err))
		}
	}
	return errs
}

// check returns all errors in the configuration of an operator.
func (op Operator) check() []error {
	var errs []error
	if !isName(op.Name) || !isName(op.Namespace) || !utf8.ValidString(op.Team) {
		errs = append(errs, fmt.Errorf("%w %q: it needs a namespace and a name, each of 1 to %d bytes of UTF-8",
			ErrOperator, op.ID(), maxName))
	}
	for _, o := range op.Objectives {
		if err := checkObjective(o, op.Own); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, checkRepeated(op.Name, op.Objectives)...)
	errs = append(errs, op.checkAlertTexts()...)
	for _, name := range op.Without {
		if err := checkSLI(name, nil); err != nil {
			errs = append(errs, err)
		}
	}
	for i, own := range op.Own {
		errs = append(errs, op.checkOwn(own, i)...)
	}
	return append(errs, op.checkLimits()...)
}

// isName reports whether the text can be the name of an object.
func isName(text string) bool { return text != "" && len(text) <= maxName && utf8.ValidString(text) }

// checkOwn returns the errors of the own SLI with index i.
func (op Operator) checkOwn(own OwnSLI, i int) []error {
	var errs []error
	if !ownName.MatchString(own.Name) {
		errs = append(errs, fmt.Errorf("%w %q: an own SLI is named with small letters, digits, - and _", ErrSLI,
			own.Name))
	}
	if isBuiltin(own.Name) {
		errs = append(errs, fmt.Errorf("%w %q: every operator has an SLI of that name already", ErrSLI, own.Name))
	}
	if slices.ContainsFunc(op.Own[:i], func(o OwnSLI) bool { return o.Name == own.Name }) {
		errs = append(errs, fmt.Errorf("%w %q: it is listed twice", ErrSLI, own.Name))
	}
	if err := own.check(); err != nil {
		errs = append(errs, err)
	}
	if !slices.ContainsFunc(op.Objectives, func(o Objective) bool { return o.SLI == own.Name }) {
		errs = append(errs, fmt.Errorf("%w %q: it has no objective", ErrSLI, own.Name))
	}
	return errs
}

// checkRepeated returns an error for each SLI that has two objectives.
func checkRepeated(where string, objectives []Objective) []error {
	var errs []error
	for i, o := range objectives {
		if slices.ContainsFunc(objectives[:i], func(p Objective) bool { return p.SLI == o.SLI }) {
			errs = append(errs, fmt.Errorf("%w: %s has two objectives for %s", ErrTarget, where, o.SLI))
		}
	}
	return errs
}

// checkObjective returns an error if the objective is invalid. own are the own SLIs of its operator.
func checkObjective(o Objective, own []OwnSLI) error {
	if err := checkSLI(o.SLI, own); err != nil {
		return err
	}
	if err := o.Target.check(); err != nil {
		return fmt.Errorf("%s: %w", o.SLI, err)
	}
	if !slices.Contains([]Alerting{"", AlertsAll, AlertsPages, AlertsTickets, AlertsNone}, o.Alerts) {
		return fmt.Errorf("%w %q of %s: choose one of %s, %s, %s, %s", ErrAlert, o.Alerts, o.SLI, AlertsAll,
			AlertsPages, AlertsTickets, AlertsNone)
	}
	if err := o.checkThresholds(); err != nil {
		return err
	}
	if o.Period == 0 {
		return nil
	}
	if err := checkPeriod(o.Period); err != nil {
		return fmt.Errorf("%s: %w", o.SLI, err)
	}
	return nil
}

// isBuiltin reports whether the name is an SLI that every operator can have, or an SLI of a probe.
func isBuiltin(name string) bool {
	return slices.ContainsFunc(SLIs(), func(s SLI) bool { return s.Name == name }) || strings.HasPrefix(name, Probe)
}

// CheckSLI returns an error if no SLI has the name, among the SLIs of every
// operator and the own SLIs that are given. The error suggests the nearest name.
func CheckSLI(name string, own ...string) error {
	var list []OwnSLI
	for _, n := range own {
		list = append(list, OwnSLI{Name: n})
	}
	return checkSLI(name, list)
}

// checkSLI returns an error unless the SLI exists for every operator or among the own SLIs.
func checkSLI(name string, own []OwnSLI) error {
	if isBuiltin(name) {
		return nil
	}
	var known []string
	for _, o := range own {
		known = append(known, o.Name)
	}
	if slices.Contains(known, name) {
		return nil
	}
	for _, s := range SLIs() {
		known = append(known, s.Name)
	}
	if near := findNearest(name, known); near != "" {
		return fmt.Errorf("%w %q: did you mean %s?", ErrSLI, name, near)
	}
	return fmt.Errorf("%w %q: choose one of %s", ErrSLI, name, strings.Join(known, ", "))
}

// findNearest returns the known name with the fewest edits, or an empty string if no name is near.
func findNearest(name string, known []string) string {
	best, found := 1+max(1, len(name)/3), "" // at most a third of the characters may differ
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < best {
			best, found = d, k
		}
	}
	return found
}
