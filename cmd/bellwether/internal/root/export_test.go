// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

// Reading exports showsHubState for tests.
var Reading = showsHubState
