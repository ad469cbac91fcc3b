// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/rollouts"
)

var (
	phaseDesc        = kit.Desc(series.RolloutPhase)
	clustersDesc     = kit.Desc(series.RolloutClusters)
	heldDesc         = kit.Desc(series.RolloutHeld)
	infoDesc         = kit.Desc(series.RolloutInfo)
	changeStartDesc  = kit.Desc(series.RolloutChangeStart)
	startDesc        = kit.Desc(series.RolloutStart)
	endDesc          = kit.Desc(series.RolloutEnd)
	wavePhaseDesc    = kit.Desc(series.RolloutWavePhase)
	waveClustersDesc = kit.Desc(series.RolloutWaveClusters)
	waveFailedDesc   = kit.Desc(series.RolloutWaveFailed)
	waveStartDesc    = kit.Desc(series.RolloutWaveStart)
	gateWaitingDesc  = kit.Desc(series.RolloutGateWaiting)
	waveVerifiedDesc = kit.Desc(series.RolloutWaveVerified)
)

// Gauges returns the collector of the rollouts' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, phaseDesc, clustersDesc, heldDesc, infoDesc, changeStartDesc, startDesc,
		endDesc, wavePhaseDesc, waveClustersDesc, waveFailedDesc, waveStartDesc, waveVerifiedDesc, gateWaitingDesc)
}

func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var all v1alpha1.OperatorRolloutList
	if err := cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorRollouts: %w", err)
	}
	latest := map[types.NamespacedName]*v1alpha1.OperatorRollout{}
	for i := range all.Items {
		ro := &all.Items[i]
		key := types.NamespacedName{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
		if known := latest[key]; known == nil || known.Spec.Revision < ro.Spec.Revision {
			latest[key] = ro
		}
	}
	for _, ro := range latest {
		sample{ro, out}.rollout()
	}
	return collectChanges(ctx, cache, all.Items, out)
}

// sample writes the metrics of an operator's newest rollout.
type sample struct {
	*v1alpha1.OperatorRollout
	out chan<- prometheus.Metric
}

func (s sample) rollout() {
	s.gauge(infoDesc, 1, s.Name, s.Spec.Release.VersionText(), series.ShortHash(s.Spec.Release.Hash()))
	if s.Status.Phase != "" {
		s.gauge(phaseDesc, 1, string(s.Status.Phase))
	}
	s.counts(clustersDesc, s.Status.Clusters)
	held := map[string]int32{}
	for _, g := range s.Status.HeldBack {
		held[g.Reason] += g.Count
	}
	for reason, n := range held {
		s.gauge(heldDesc, float64(n), reason)
	}
	s.time(startDesc, s.Status.StartedAt)
	s.time(endDesc, s.Status.EndedAt)
	for _, w := range s.Status.Waves {
		s.gauge(wavePhaseDesc, 1, w.Name, string(w.Phase))
		s.counts(waveClustersDesc, w.WaveCounts, w.Name)
		s.time(waveStartDesc, w.StartedAt, w.Name)
		s.time(waveVerifiedDesc, w.VerifiedAt, w.Name)
		for _, g := range w.Gates {
			s.time(gateWaitingDesc, g.WaitingSince, w.Name, g.Name)
		}
	}
}

func (s sample) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	all := append([]string{s.Namespace, s.Spec.Operator.Name}, labels...)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, all...)
}

// failedWaves writes which waves of a rollout were judged failed.
func (s sample) failedWaves() {
	for _, w := range s.Status.Waves {
		if rollouts.IsJudgedFailed(w) {
			s.gauge(waveFailedDesc, 1, w.Name, s.Spec.Release.Version, series.ShortHash(s.Spec.Release.Hash()))
		}
	}
}

// counts writes every state, also those that no cluster is in.
func (s sample) counts(desc *prometheus.Desc, c v1alpha1.WaveCounts, labels ...string) {
	for state, n := range map[string]int32{
		"pending": c.Pending, "in_progress": c.InProgress, "succeeded": c.Succeeded,
		"failed": c.Failed, "deferred": c.Deferred, "removed": c.Removed,
	} {
		s.gauge(desc, float64(n), append(slices.Clone(labels), state)...)
	}
}

// time writes when something was, unless it was not yet.
func (s sample) time(desc *prometheus.Desc, at *metav1.Time, labels ...string) {
	if at != nil {
		s.gauge(desc, float64(at.Unix()), labels...)
	}
}
