// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
)

// ofContainer names a series of a kubelet, with all labels that it has when prometheus-operator scrapes it.
func ofContainer(metric, pod, container string) string {
	const cgroup = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5c3f.slice"
	image, name, group := "", "", cgroup
	if container != "" {
		image, name = "registry.example.com/"+container+"@sha256:0123", "8f7a"
		group = cgroup + "/cri-containerd-8f7a.scope"
	}
	return fmt.Sprintf(`%s{cluster="c",container=%q,endpoint="https-metrics",id=%q,image=%q,instance="10.0.0.7:10250",`+
		`job="kubelet",metrics_path="/metrics/cadvisor",name=%q,namespace="ns",node="node-1",pod=%q,service="kubelet"}`,
		metric, container, group, image, name, pod)
}

// ofVolume names a series of a kubelet about a volume.
func ofVolume(metric, claim string) string {
	return fmt.Sprintf(`%s{cluster="c",endpoint="https-metrics",instance="10.0.0.7:10250",job="kubelet",`+
		`metrics_path="/metrics",namespace="ns",node="node-1",persistentvolumeclaim=%q,service="kubelet"}`, metric,
		claim)
}

const (
	memoryUsed  = "container_memory_working_set_bytes"
	memoryLimit = "container_spec_memory_limit_bytes"
	throttled   = "container_cpu_cfs_throttled_periods_total"
	periods     = "container_cpu_cfs_periods_total"
	volumeFree  = "kubelet_volume_stats_available_bytes"
	volumeSize  = "kubelet_volume_stats_capacity_bytes"
	claimed     = "bellwether_operator_volume_claim"

	echoPod = "echo-manager-6d4cf56db6-x7k2p"
)

// with adds the Deployment echo-manager of the operator to series.
func with(series map[string]string) map[string]string {
	out := map[string]string{of(desired, `deployment="echo-manager"`): one,
		of(available, `deployment="echo-manager"`): one}
	maps.Copy(out, series)
	return out
}

func init() {
	memory := func(pod, container, used, limit string) map[string]string {
		return map[string]string{ofContainer(memoryUsed, pod, container): used,
			ofContainer(memoryLimit, pod, container): limit}
	}
	cpu := func(pod, container, bad, all string) map[string]string {
		return map[string]string{ofContainer(throttled, pod, container): bad, ofContainer(periods, pod, container): all}
	}
	both := func(a, b map[string]string) map[string]string {
		maps.Copy(a, b)
		return a
	}
	volume := func(claim, free, size string) map[string]string {
		return map[string]string{ofVolume(volumeFree, claim): free, ofVolume(volumeSize, claim): size,
			of(claimed, `namespace="ns"`, `persistentvolumeclaim="data"`): one}
	}
	maps.Copy(indicators, map[string]indicator{
		"enough memory":         {"memory", "0", with(memory(echoPod, "manager", "90x30", "100x30"))},
		"little memory is left": {"memory", "1", with(memory(echoPod, "manager", "91x30", "100x30"))},
		"memory NaN":            {"memory", "1", with(memory(echoPod, "manager", nan, "100x30"))},
		"no limit of memory":    {"memory", "", with(memory(echoPod, "manager", "91x30", zero))},
		"a pod as a whole": {"memory", "0", with(both(memory(echoPod, "manager", "50x30", "100x30"),
			both(memory(echoPod, "", "99x30", "100x30"), memory(echoPod, "POD", "99x30", "100x30"))))},
		"one container of two": {"memory", "1", with(both(memory(echoPod, "manager", "50x30", "100x30"),
			memory(echoPod, "proxy", "99x30", "100x30")))},
		"a pod of a custom resource": {"memory", "",
			with(memory("echo-server-6d4cf56db6-x7k2p", "server", "99x30", "100x30"))},
		"a Deployment of a longer name": {"memory", "",
			with(memory("echo-manager-two-6d4cf56db6-x7k2p", "manager", "99x30", "100x30"))},
		"a pod of a StatefulSet": {"memory", "", with(memory("echo-manager-0", "manager", "99x30", "100x30"))},
		"kubelets only":          {"memory", "", memory(echoPod, "manager", "99x30", "100x30")},

		"not throttled": {"throttling", "0", with(cpu(echoPod, "manager", "0+100x30", "0+600x30"))},
		"throttled":     {"throttling", "1", with(cpu(echoPod, "manager", "0+160x30", "0+600x30"))},
		"throttled NaN": {"throttling", "1", with(cpu(echoPod, "manager", nan, "0+600x30"))},
		"no period":     {"throttling", "", with(cpu(echoPod, "manager", idle, idle))},
		"throttled elsewhere": {"throttling", "",
			with(cpu("other-6d4cf56db6-x7k2p", "manager", "0+160x30", "0+600x30"))},

		"room on a volume": {"storage", "0", volume("data", "10x30", "100x30")},
		"a full volume":    {"storage", "1", volume("data", "9x30", "100x30")},
		"volume NaN":       {"storage", "1", volume("data", nan, "100x30")},
		"another volume":   {"storage", "", volume("other", "9x30", "100x30")},
	})
}
