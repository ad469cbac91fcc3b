// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"time"
)

const (
	// repeatFor is how long a read is repeated that the API server fails to answer.
	repeatFor = time.Minute
	// repeatPause is between two of them.
	repeatPause = 200 * time.Millisecond
)

// repeatReads repeats reads that an API server answers with an error of its own, for example because etcd did not
// answer in time on a busy machine: tests read in the middle of polls, and are not about that. An API server that is
// away is an error at once.
type repeatReads struct{ next http.RoundTripper }

func (r repeatReads) RoundTrip(request *http.Request) (*http.Response, error) {
	end := time.Now().Add(repeatFor)
	for {
		response, err := r.next.RoundTrip(request)
		if err != nil || request.Method != http.MethodGet || !isOwnError(response.StatusCode) || time.Now().After(end) {
			return response, err
		}
		_ = response.Body.Close()
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-time.After(repeatPause):
		}
	}
}

func isOwnError(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusTooManyRequests:
		return true
	}
	return false
}
