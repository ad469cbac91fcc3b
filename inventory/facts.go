// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// OfCluster returns the facts of a FleetCluster.
func OfCluster(c *v1alpha1.FleetCluster) []Facts {
	online := conditions.Get(c.Status.Conditions, v1alpha1.ConditionOnline)
	v := c.Status.Versions
	values := []any{encodeLabels(c.Labels), toText(online.Status), toTime(c.Status.StaleSince)}
	values = append(values, listReady(c.Status.Conditions)...)
	values = append(values, toText(v.Agent), toText(v.Kubernetes), toText(v.OLM), toTruth(c.Spec.Paused))
	var freeze, veto, source string
	if f := c.Status.Freeze; f != nil {
		freeze = f.Name
	}
	if o := c.Status.Veto; o != nil {
		veto = o.Reason
	}
	if s := c.Spec.SourceRef; s != nil {
		source = s.Kind + " " + strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
	}
	values = append(values, toText(freeze), toText(veto), toText(source))
	return buildSingle(Clusters, Row{Key: []string{c.Name}, Values: values})
}

// OfOperator returns the facts of a ManagedOperator, with the decisions that its status has.
func OfOperator(o *v1alpha1.ManagedOperator) []Facts {
	var target v1alpha1.TargetVersion
	if t := o.Status.Target; t != nil {
		target = *t
	}
	var waiting string
	if a := o.Status.Available; a != nil {
		waiting = a.Version
	}
	values := []any{toText(o.Spec.Package), toText(o.Spec.Catalog.Name), toText(o.Spec.Version), toText(target.Version),
		toText(target.Channel), toText(waiting), toTruth(o.Spec.Paused)}
	values = append(values, listReady(o.Status.Conditions)...)
	n := o.Status.Clusters
	values = append(values, toCount(n.Selected), toCount(n.Updated), toCount(n.Ready))
	operator := []string{o.Namespace, o.Name}
	decisions := Facts{Table: Decisions, Owner: operator}
	if log := o.Status.Decisions; log != nil {
		for _, d := range log.Entries {
			decisions.Rows = append(decisions.Rows, Row{
				Key:    append(operator[:2:2], FormatTime(d.At.Time), string(d.What), d.Rollout, d.On, d.By),
				Values: []any{toText(d.Reason)},
			})
		}
	}
	return append(buildSingle(Operators, Row{Key: operator, Values: values}), decisions)
}

// OfInstall returns the facts of an OperatorInstall.
func OfInstall(i *v1alpha1.OperatorInstall) []Facts {
	key := []string{i.Spec.Operator.Namespace, i.Spec.Operator.Name, i.Spec.Cluster}
	var version, admitted, rollout, wave string
	if v := i.Status.Installed; v != nil {
		version = cmp.Or(v.Version, v.Bundle)
	}
	if a := i.Spec.Admission; a != nil {
		admitted, rollout, wave = a.Release.Version, a.Rollout, a.Wave
	}
	values := append([]any{toText(version), toText(admitted), toText(rollout), toText(wave)},
		listReady(i.Status.Conditions)...)
	drift := Facts{Table: Drift, Owner: key}
	if c := conditions.Get(i.Status.Conditions, v1alpha1.ConditionDrifted); c.Status == metav1.ConditionTrue {
		drift.Rows = []Row{{Key: key, Values: []any{toText(c.Reason), toText(c.Message)}}}
	}
	return append(buildSingle(Installs, Row{Key: key, Values: values}), drift)
}

// OfCatalog returns the facts of an OperatorCatalog.
func OfCatalog(c *v1alpha1.OperatorCatalog) []Facts {
	owner := []string{c.Namespace, c.Name}
	versions, channels := Facts{Table: Versions, Owner: owner}, Facts{Table: Channels, Owner: owner}
	for _, p := range c.Status.Packages {
		for _, v := range p.Versions {
			versions.Rows = append(versions.Rows, Row{
				Key: append(owner[:2:2], p.Name, v.Bundle),
				Values: []any{toText(v.Version), toText(v.Blocked), toText(v.Deprecated), toText(v.EndOfSupport),
					toTruth(v.Absent)},
			})
		}
		for _, channel := range p.Channels {
			channels.Rows = append(channels.Rows, Row{Key: append(owner[:2:2], p.Name, channel.Name),
				Values: []any{toText(channel.Head), toCount(channel.Versions)}})
		}
	}
	return []Facts{versions, channels}
}

// OfRollout returns the facts of an OperatorRollout, with its waves and gates.
func OfRollout(ro *v1alpha1.OperatorRollout) []Facts {
	key := []string{ro.Namespace, ro.Name}
	s, n := ro.Status, ro.Status.Clusters
	var rollbackOf, rollbackReason string
	if r := ro.Spec.Rollback; r != nil {
		rollbackOf, rollbackReason = r.Of, r.Reason
	}
	values := []any{toText(ro.Spec.Operator.Name), ro.Spec.Revision, toText(ro.Spec.Release.VersionText()),
		toText(s.Phase), toText(s.CurrentWave), toTime(s.StartedAt), toTime(s.EndedAt), toText(rollbackOf),
		toText(rollbackReason), toTruth(ro.Spec.Paused), toText(ro.Spec.Blocked), toText(s.Message),
		toCount(n.Total), toCount(n.Succeeded), toCount(n.Failed)}
	waves, gates := Facts{Table: Waves, Owner: key}, Facts{Table: Gates, Owner: key}
	for position, w := range s.Waves {
		wave := append(key[:2:2], w.Name)
		waves.Rows = append(waves.Rows, Row{Key: wave, Values: []any{int64(position + 1), toText(w.Phase),
			toTime(w.StartedAt), toTime(w.UpdatedAt), toTime(w.VerifiedAt), toTime(w.FailedAt), toCount(w.Total),
			toCount(w.Succeeded), toCount(w.Failed), toCount(w.Deferred)}})
		for _, g := range w.Gates {
			var m v1alpha1.GateMeasurement
			if g.Measurement != nil {
				m = *g.Measurement
			}
			gates.Rows = append(gates.Rows, Row{Key: append(wave[:3:3], g.Name), Values: []any{toText(g.Verdict),
				toTruth(g.Approval), toTime(g.DecidedAt), toText(g.Evidence), toText(m.Value), toText(m.Threshold)}})
		}
	}
	return append(buildSingle(Rollouts, Row{Key: key, Values: values}), waves, gates)
}

// WithoutRows returns the facts of the same owners without any rows: what remains once their object is deleted.
func WithoutRows(all []Facts) []Facts {
	out := make([]Facts, 0, len(all))
	for _, f := range all {
		out = append(out, Facts{Table: f.Table, Owner: f.Owner})
	}
	return out
}

// buildSingle returns the facts that are the single row of an object.
func buildSingle(t *Table, r Row) []Facts { return []Facts{{Table: t, Owner: r.Key, Rows: []Row{r}}} }

// listReady returns the values of readyColumn, reasonColumn and messageColumn.
func listReady(all []metav1.Condition) []any {
	c := conditions.Get(all, v1alpha1.ConditionReady)
	return []any{toText(c.Status), toText(c.Reason), toText(c.Message)}
}

// toText returns a text as a value, and nil for the empty text.
func toText[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// toTime returns a time as a value, and nil for no time.
func toTime(t *metav1.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return FormatTime(t.Time)
}

// toTruth returns 1 for true, and 0 for false.
func toTruth(b bool) any {
	if b {
		return int64(1)
	}
	return int64(0)
}

// toCount returns a count as a value.
func toCount(n int32) any { return int64(n) }

// encodeLabels returns labels as a JSON object, whose keys are sorted.
func encodeLabels(labels map[string]string) any {
	if len(labels) == 0 {
		return "{}"
	}
	out, err := json.Marshal(labels)
	if err != nil {
		panic(err) // texts can always be encoded
	}
	return string(out)
}
