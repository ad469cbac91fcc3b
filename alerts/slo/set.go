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
	// SLI is a name of SLIs, probe:NAME, or the name of an own SLI. In a Set's
	// default, "probe:" stands for every probe there is.
	SLI    string
	Target PPM
	// Period is the budget's. Zero is DefaultPeriod.
	Period time.Duration
	// Alerts are those that there are about it. Empty: all.
	Alerts Alerting
	// Thresholds replace what the SLI takes for bad.
	Thresholds Thresholds
}

func (o Objective) period() time.Duration {
	if o.Period == 0 {
		return DefaultPeriod
	}
	return o.Period
}

// Operator has objectives of its own.
type Operator struct {
	// Namespace and Name identify the ManagedOperator: the labels operator_namespace
	// and operator.
	Namespace, Name string
	// Team is who gets the alerts. It is a label of them.
	Team string
	// Criticality is how important the operator is. It is an annotation of alerts.
	// Empty: Standard.
	Criticality string
	// Objectives replace the default's of the same SLI, and add to it. SLIs that
	// are named here are expected to have slices.
	Objectives []Objective
	// Without are SLIs of the default that the operator does not have.
	Without []string
	// Own are further SLIs; each needs an objective.
	Own []OwnSLI
	// Labels and Annotations are those of the operator's alerts beside Bellwether's
	// own, as CheckLabel and CheckAnnotation permit.
	Labels, Annotations map[string]string
	// Limits are those of the SLI custom-resources, which has no slices without.
	Limits []Limit
}

// ID is the operator's namespace and name.
func (op Operator) ID() types.NamespacedName {
	return types.NamespacedName{Namespace: op.Namespace, Name: op.Name}
}

// Set is all objectives of a fleet.
type Set struct {
	// Default are the objectives of every operator in the inventory.
	Default []Objective
	// Operators are those that differ from the default.
	Operators []Operator
	// Named are operators that somebody wrote objectives for, and that are therefore
	// expected to be in the inventory: an alert says so of each one that is not.
	Named []types.NamespacedName
	// RunbookURL is the folder with a page for each alert, such as DefaultRunbooks; what
	// follows is ALERT.md, and #SLI where the alert is about one. Empty: no links.
	RunbookURL string
	// DashboardURL begins the links to the dashboard; what follows is its variables.
	// Empty: no links.
	DashboardURL string
	// WithoutAlerts are names of alerts that are left out, of SwitchableAlerts.
	WithoutAlerts []string
	// Blame is what it takes for a release to be blamed.
	Blame Blame
}

// DefaultProfile returns the objectives that suit any operator: every SLI with
// the table's target, over 30 days.
func DefaultProfile() []Objective {
	var out []Objective
	for _, s := range SLIs() {
		out = append(out, Objective{SLI: s.Name, Target: s.Target})
	}
	return out
}

// maxName bounds names of operators, as Kubernetes does.
const maxName = 253

var ownName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$`)

// Check says what is wrong with a set: all of it, joined. Rules can be made of a
// set with which nothing is wrong.
func (s Set) Check() error { return errors.Join(s.check()...) }

func (s Set) check() []error {
	var errs []error
	for _, o := range s.Default {
		if err := checkObjective(o, nil); err != nil {
			errs = append(errs, fmt.Errorf("default: %w", err))
		}
	}
	errs = append(errs, repeated("default", s.Default)...)
	for _, name := range s.WithoutAlerts {
		if err := CheckAlert(name); err != nil {
			errs = append(errs, err)
		}
	}
	if err := CheckRunbookURL(s.RunbookURL); err != nil {
		errs = append(errs, err)
	}
	seen := map[types.NamespacedName]bool{}
	for _, op := range s.Operators {
		if seen[op.ID()] {
			errs = append(errs, fmt.Errorf("%w %q: it is listed twice", ErrOperator, op.ID()))
		}
		seen[op.ID()] = true
		for _, err := range op.check() {
			errs = append(errs, fmt.Errorf("operator %s: %w", op.ID(), err))
		}
	}
	return errs
}

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
	errs = append(errs, repeated(op.Name, op.Objectives)...)
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

func isName(text string) bool { return text != "" && len(text) <= maxName && utf8.ValidString(text) }

func (op Operator) checkOwn(own OwnSLI, i int) []error {
	var errs []error
	if !ownName.MatchString(own.Name) {
		errs = append(errs, fmt.Errorf("%w %q: an own SLI is named with small letters, digits, - and _", ErrSLI,
			own.Name))
	}
	if builtin(own.Name) {
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

func repeated(where string, objectives []Objective) []error {
	var errs []error
	for i, o := range objectives {
		if slices.ContainsFunc(objectives[:i], func(p Objective) bool { return p.SLI == o.SLI }) {
			errs = append(errs, fmt.Errorf("%w: %s has two objectives for %s", ErrTarget, where, o.SLI))
		}
	}
	return errs
}

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

func builtin(name string) bool {
	return slices.ContainsFunc(SLIs(), func(s SLI) bool { return s.Name == name }) || strings.HasPrefix(name, Probe)
}

// CheckSLI says whether there is an SLI of that name, among those of any
// operator and the own ones that are named; the error suggests the nearest.
func CheckSLI(name string, own ...string) error {
	var list []OwnSLI
	for _, n := range own {
		list = append(list, OwnSLI{Name: n})
	}
	return checkSLI(name, list)
}

func checkSLI(name string, own []OwnSLI) error {
	if builtin(name) {
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
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("%w %q: did you mean %s?", ErrSLI, name, near)
	}
	return fmt.Errorf("%w %q: choose one of %s", ErrSLI, name, strings.Join(known, ", "))
}

// nearest is the known name with the fewest edits, if these are few.
func nearest(name string, known []string) string {
	best, found := 1+max(1, len(name)/3), ""
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < best {
			best, found = d, k
		}
	}
	return found
}
