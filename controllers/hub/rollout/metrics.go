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
	phaseDesc        = kit.NewDesc(series.RolloutPhase)
	clustersDesc     = kit.NewDesc(series.RolloutClusters)
	heldDesc         = kit.NewDesc(series.RolloutHeld)
	infoDesc         = kit.NewDesc(series.RolloutInfo)
	changeStartDesc  = kit.NewDesc(series.RolloutChangeStart)
	startDesc        = kit.NewDesc(series.RolloutStart)
	endDesc          = kit.NewDesc(series.RolloutEnd)
	wavePhaseDesc    = kit.NewDesc(series.RolloutWavePhase)
	waveClustersDesc = kit.NewDesc(series.RolloutWaveClusters)
	waveFailedDesc   = kit.NewDesc(series.RolloutWaveFailed)
	waveStartDesc    = kit.NewDesc(series.RolloutWaveStart)
	gateWaitingDesc  = kit.NewDesc(series.RolloutGateWaiting)
	waveVerifiedDesc = kit.NewDesc(series.RolloutWaveVerified)
)

// Gauges returns the collector of the rollouts' metrics.
func Gauges(mgr ctrl.Manager) prometheus.Collector {
	return kit.NewGauges(mgr, collect, phaseDesc, clustersDesc, heldDesc, infoDesc, changeStartDesc, startDesc,
		endDesc, wavePhaseDesc, waveClustersDesc, waveFailedDesc, waveStartDesc, waveVerifiedDesc, gateWaitingDesc)
}

// collect sends to out the gauges of the newest rollout of each operator, and those of the newest rollout that
// started with each version of an operator.
func collect(ctx context.Context, cache client.Reader, out chan<- prometheus.Metric) error {
	var all v1alpha1.OperatorRolloutList
	if err := cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OperatorRollouts: %w", err)
	}
	newest := map[types.NamespacedName]*v1alpha1.OperatorRollout{}
	for i := range all.Items {
		ro := &all.Items[i]
		key := types.NamespacedName{Namespace: ro.Namespace, Name: ro.Spec.Operator.Name}
		if known := newest[key]; known == nil || known.Spec.Revision < ro.Spec.Revision {
			newest[key] = ro
		}
	}
	for _, ro := range newest {
		gaugeWriter{ro, out}.writeRollout()
	}
	return collectChanges(ctx, cache, all.Items, out)
}

// gaugeWriter sends the gauges of one rollout to out.
type gaugeWriter struct {
	*v1alpha1.OperatorRollout
	out chan<- prometheus.Metric
}

// writeRollout sends all gauges of the newest rollout of an operator.
func (s gaugeWriter) writeRollout() {
	s.write(infoDesc, 1, s.Name, s.Spec.Release.VersionText(), series.ShortHash(s.Spec.Release.Hash()))
	if s.Status.Phase != "" {
		s.write(phaseDesc, 1, string(s.Status.Phase))
	}
	s.writeCounts(clustersDesc, s.Status.Clusters)
	heldBack := map[string]int32{}
	for _, g := range s.Status.HeldBack {
		heldBack[g.Reason] += g.Count
	}
	for reason, n := range heldBack {
		s.write(heldDesc, float64(n), reason)
	}
	s.writeTime(startDesc, s.Status.StartedAt)
	s.writeTime(endDesc, s.Status.EndedAt)
	for _, w := range s.Status.Waves {
		s.write(wavePhaseDesc, 1, w.Name, string(w.Phase))
		s.writeCounts(waveClustersDesc, w.WaveCounts, w.Name)
		s.writeTime(waveStartDesc, w.StartedAt, w.Name)
		s.writeTime(waveVerifiedDesc, w.VerifiedAt, w.Name)
		for _, g := range w.Gates {
			s.writeTime(gateWaitingDesc, g.WaitingSince, w.Name, g.Name)
		}
	}
}

// write sends one gauge. The labels of the operator come first.
func (s gaugeWriter) write(desc *prometheus.Desc, value float64, labels ...string) {
	all := append([]string{s.Namespace, s.Spec.Operator.Name}, labels...)
	s.out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, all...)
}

// writeFailedWaves sends a gauge for each wave of the rollout that was judged failed.
func (s gaugeWriter) writeFailedWaves() {
	for _, w := range s.Status.Waves {
		if rollouts.IsJudgedFailed(w) {
			s.write(waveFailedDesc, 1, w.Name, s.Spec.Release.Version, series.ShortHash(s.Spec.Release.Hash()))
		}
	}
}

// writeCounts sends a gauge for each state, including states without clusters.
func (s gaugeWriter) writeCounts(desc *prometheus.Desc, c v1alpha1.WaveCounts, labels ...string) {
	for state, n := range map[string]int32{
		"pending": c.Pending, "in_progress": c.InProgress, "succeeded": c.Succeeded,
		"failed": c.Failed, "deferred": c.Deferred, "removed": c.Removed,
	} {
		s.write(desc, float64(n), append(slices.Clone(labels), state)...)
	}
}

// writeTime sends a time as a gauge in Unix seconds. It sends nothing if the time is nil.
func (s gaugeWriter) writeTime(desc *prometheus.Desc, at *metav1.Time, labels ...string) {
	if at != nil {
		s.write(desc, float64(at.Unix()), labels...)
	}
}
