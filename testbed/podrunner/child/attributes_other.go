// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import "syscall"

// attributes has no death signal to give on this system.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
