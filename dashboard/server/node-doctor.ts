/** The doctor of a machine, asked through a session of its node: nothing is examined without a request. */
import { type IncomingMessage, request } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../api/api-error.ts'
import type { DoctorAnswer } from '../../api/dashboard/dashboard-messages.ts'
import { decode } from '../../api/decode.ts'
import { list, object, oneOf, optional, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import type { ResourceNeeds, ResourceRequest } from '../../broker-controller/apiserver/handlers/strategy.ts'
import { connectionOn } from '../../broker-controller/apiserver/proxy/session-connection.ts'
import { openSession } from '../../broker-controller/apiserver/streams/node-session.ts'
import { withDeadline } from '../../daemon/deadline.ts'
import { collectedBytes } from '../../daemon/http/collected-bytes.ts'
import { limitInformational } from '../../daemon/http/informational-answers.ts'

/** Throws the ApiError of a refusal: NotFound from an agent that cannot, ServiceUnavailable where the node gives no answer. */
export type NodeDoctor = (node: string, by: Pick<ResourceRequest, 'identity' | 'signal'>) => Promise<DoctorAnswer>

/** An agent gives its doctor 25 s. */
const deadlineMs = 30_000
/** A report has some 10 kB. A node may send anything, and what is decoded in one go must not hold up others. */
const mostBytes = 256 * 1024
const mostFindings = 200
const longestText = 2_000

const ReportSchema = object({
  time: text,
  findings: list(
    object({
      check: text,
      verdict: oneOf('ok', 'warning', 'problem', 'unknown'),
      found: text,
      remedy: optional(text),
      fix: optional(text),
    }),
  ),
})

export function nodeDoctor(needs: Pick<ResourceNeeds, 'sessions' | 'clock'>): NodeDoctor {
  return async (node, by) => {
    const connection = connectionOn(await openSession(node, { node: {} }, by, needs))
    connection.on('error', () => undefined) // the request sees it
    try {
      return await withDeadline(
        deadlineMs,
        by.signal,
        () => reportOn(connection, node),
        `node "${node}" did not answer`,
      )
    } catch (cause) {
      if (cause instanceof ApiError) throw cause
      throw new ApiError('ServiceUnavailable', `the doctor of node "${node}" gave no report`, undefined, { cause })
    } finally {
      connection.destroy()
    }
  }
}

async function reportOn(connection: Duplex, node: string): Promise<DoctorAnswer> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { host: 'node', connection: 'close' }
    const asked = request({ createConnection: () => connection, path: '/doctor', headers }, resolve)
    limitInformational(asked)
    // Not once: it may fail again while its socket is torn down.
    asked.on('error', reject)
    asked.end()
  })
  const body = await textOf(answer)
  if (answer.statusCode === 404)
    throw new ApiError('NotFound', `the agent of node "${node}" is too old to examine its machine on request`)
  const decoded = decode(ReportSchema, parseJson(body))
  if (answer.statusCode !== 200 || !decoded.ok) throw new Error(body.slice(0, 200))
  const { time, findings } = decoded.value
  const short = (whole: string) => whole.slice(0, longestText)
  return {
    time: short(time),
    findings: findings.slice(0, mostFindings).map(({ check, verdict, found, remedy, fix }) => ({
      ...{ check: short(check), verdict, found: short(found) },
      ...(remedy !== undefined && { remedy: short(remedy) }),
      ...(fix !== undefined && { fix: short(fix) }),
    })),
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const bytes = collectedBytes(mostBytes)
  for await (const piece of answer) {
    if (!bytes.add(piece)) throw new Error(`the report is longer than ${mostBytes} bytes, or cut up`)
  }
  return bytes.take().toString('utf8')
}
