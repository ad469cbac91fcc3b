// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"maps"
)

const reconcileTime = "controller_runtime_reconcile_time_seconds"

// native is a native histogram to which as many quick reconciles, of about a second, and slow ones, of about 20 s, are
// added each minute.
func native(quick, slow int) string {
	one := fmt.Sprintf("{{schema:0 sum:%d count:%d buckets:[%d 0 0 0 0 %d]}}", quick+20*slow, quick+slow, quick, slow)
	return one + "+" + one + "x30"
}

func init() {
	maps.Copy(indicators, map[string]indicator{
		"native, quick":          {"latency", "0", map[string]string{ofPod(reconcileTime): native(60, 0)}},
		"native, slow":           {"latency", "1", map[string]string{ofPod(reconcileTime): native(50, 10)}},
		"native, a few are slow": {"latency", "0", map[string]string{ofPod(reconcileTime): native(58, 2)}},
		"native, one of two": {"latency", "0",
			map[string]string{ofPod(reconcileTime): "{{schema:0}}x24 {{schema:0 sum:21 count:2 " +
				"buckets:[1 0 0 0 0 1]}}x6"}},
		"native, idle": {"latency", "0",
			map[string]string{ofPod(reconcileTime): "{{schema:0 sum:9 count:9 buckets:[9]}}x30"}},
		"native, two controllers": {"latency", "1",
			map[string]string{ofPod(reconcileTime, `controller="a"`): native(60, 0),
				ofPod(reconcileTime, `controller="b"`): native(0, 30)}},
		"native is slow, classic is not": {"latency", "0", map[string]string{ofPod(reconcileTime): native(0, 60),
			ofPod(bucket, `le="10"`): steady, ofPod(count): steady}},
		"native beside a classic one without the bound": {"latency", "1",
			map[string]string{ofPod(reconcileTime): native(0, 60),
				ofPod(bucket, `le="7"`): steady, ofPod(count): steady}},
	})
}
