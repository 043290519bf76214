/** Responses before the answer, such as 103 Early Hints, of which a server may send any number. */
import type { ClientRequest } from 'node:http'

/** As Go's client (max1xxResponses in net/http/transport.go). */
const most = 5

/** Ends the request with an error when its server sends more of them: each takes as much time as an answer. */
export function limitInformational(asked: ClientRequest): void {
  let count = 0
  asked.on('information', () => {
    count += 1
    if (count > most) asked.destroy(new Error('the server sends too many 1xx informational responses'))
  })
}
