// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LimitMemory makes the garbage collector work harder when the process uses nine
// tenths of its container's memory limit. Without a limit it does nothing. The
// variable GOMEMLIMIT overrides it.
func LimitMemory() {
	limit, err := memlimit.SetGoMemLimitWithOpts()
	switch {
	case err != nil:
		ctrl.Log.Info("The container's memory limit cannot be read", "cause", err.Error())
	case limit > 0:
		ctrl.Log.Info("Garbage collection keeps to the container's memory limit", "GOMEMLIMIT", limit)
	}
}
