// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/bellwether-dev/bellwether/apis/conditions"
)

// maxNote is the API's limit for an Event's note, in bytes. The API
// server refuses a longer note.
const maxNote = 1024

// truncateNote truncates a note to the API's limit, between two characters.
func truncateNote(note string) string {
	const ellipsis = "…"
	if len(note) <= maxNote {
		return note
	}
	length := maxNote - len(ellipsis)
	for !utf8.RuneStart(note[length]) {
		length--
	}
	return note[:length] + ellipsis
}

// Emit emits an Event about an object. The type of the Event depends on the reason: see
// conditions.EventType. The note is truncated to the API's limit.
func Emit(recorder events.EventRecorder, object runtime.Object, reason, action, format string, args ...any) {
	emit(recorder, object, conditions.EventType(reason), reason, action, fmt.Sprintf(format, args...))
}

// emit emits an Event with the given type.
func emit(recorder events.EventRecorder, object runtime.Object, eventType, reason, action, note string) {
	recorder.Eventf(object, nil, eventType, reason, action, "%s", truncateNote(note))
}
