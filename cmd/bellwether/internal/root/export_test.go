// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

// Reading is for tests.
var Reading = reading
