/** Probes the connection to the controller in the same steps as the agent. Each failure has a remedy. */
import { connect } from 'node:net'
import { decode } from '../../../api/decode.ts'
import {
  type HardwareIdentity,
  HardwareIdentitySchema,
  hardwareIdentityAnnotation,
} from '../../../api/node/hardware-identity.ts'
import { mapOf, object, optional, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { apiClient, statusMessage } from '../../../daemon/api-client.ts'
import { withDeadline, within } from '../../../daemon/deadline.ts'
import { storyOf } from '../../../daemon/log.ts'
import { connectToServer, judgingMs, type KnownTime } from '../../../daemon/server-check.ts'
import type { AgentIdentity } from '../../join/identity.ts'
import { certificateDates } from '../../node/certificate/certificate-dates.ts'
import { connectionFailure } from '../../node/connection/connection-failure.ts'
import { keptServers } from '../../node/connection/controller-servers.ts'
import type { ApiReading, ControllerReading, Failure } from '../controller.ts'

/** Deadline of one step. The port and the API are probed one after the other. */
const stepMs = 1_800

const NodeSchema = object({ metadata: object({ annotations: optional(mapOf(text)) }) })

export type DoctorTime = {
  /** The time against which certificates are checked. */
  readonly knownTime: KnownTime
  /** This machine's clock. */
  readonly nowMs: () => number
}

export async function lookAtController(
  identity: AgentIdentity,
  hardware: HardwareIdentity,
  time: DoctorTime,
): Promise<ControllerReading> {
  const { apiServers, mqttServers } = keptServers(identity)
  const failed = (error: unknown): Failure => failureOf(error, identity, judgingMs(time.knownTime, time.nowMs()))
  const [apis, brokers] = await Promise.all([
    Promise.all(apiServers.map((url) => reachApi(new URL(url), identity, time, failed))),
    Promise.all(mqttServers.map((url) => reachMqtt(new URL(url), identity, time, failed))),
  ])
  const api = apis.find((one) => one.port === 'open') ?? apis[0]
  // Only one of several controllers accepts connections: the leader.
  const broker = brokers.find(({ mqtt }) => mqtt === 'open') ?? brokers[0]
  if (api === undefined || broker === undefined) throw new TypeError('An identity without addresses')
  const others = apis.flatMap(({ apiHost, port }) => (port === 'open' ? [] : [{ host: apiHost, failure: port }]))
  return {
    nodeName: identity.nodeName,
    ...api,
    ...broker,
    others: api.port === 'open' ? others : [],
    hardware,
  }
}

async function reachApi(
  url: URL,
  identity: AgentIdentity,
  time: DoctorTime,
  failed: (error: unknown) => Failure,
): Promise<Pick<ControllerReading, 'apiHost' | 'port' | 'api'>> {
  const apiHost = url.host
  try {
    await openPort(addressOf(url, 443))
  } catch (error) {
    return { apiHost, port: failed(error), api: undefined }
  }
  return { apiHost, port: 'open', api: await askApi(url, identity, time).catch(failed) }
}

async function reachMqtt(
  url: URL,
  { ca, certificate: cert, key }: AgentIdentity,
  { knownTime }: DoctorTime,
  failed: (error: unknown) => Failure,
): Promise<Pick<ControllerReading, 'mqttHost' | 'mqtt'>> {
  const mqttHost = url.host
  try {
    const address = { ...addressOf(url, 8883), ca, cert, key, knownTime }
    const connect = (signal: AbortSignal) => connectToServer(address, signal)
    const socket = await withDeadline(stepMs, undefined, connect, 'no answer')
    socket.on('error', () => undefined).destroy()
    return { mqttHost, mqtt: 'open' }
  } catch (error) {
    return { mqttHost, mqtt: failed(error) }
  }
}

async function askApi(url: URL, identity: AgentIdentity, { knownTime, nowMs }: DoctorTime): Promise<ApiReading> {
  const { ca, certificate, key, nodeName } = identity
  const client = apiClient({ url: url.origin, ca, certificate, key, knownTime, deadlineMs: stepMs })
  const { status, body, dateHeader } = await client.get(`/api/v1/nodes/${nodeName}`)
  const thereMs = Date.parse(dateHeader ?? '')
  return {
    status,
    message: statusMessage(body),
    nodeHardware: hardwareIn(body),
    aheadMs: Number.isNaN(thereMs) ? undefined : nowMs() - thereMs,
  }
}

function hardwareIn(body: unknown): HardwareIdentity | undefined {
  const node = decode(NodeSchema, body)
  const written = node.ok ? node.value.metadata.annotations?.[hardwareIdentityAnnotation] : undefined
  const decoded = decode(HardwareIdentitySchema, parseJson(written ?? ''))
  return decoded.ok ? decoded.value : undefined
}

function failureOf(thrown: unknown, identity: AgentIdentity, nowMs: number): Failure {
  const error = firstOf(thrown)
  const { remedy } = connectionFailure(error, certificateDates(identity.certificate), nowMs)
  return { error: storyOf(error), remedy }
}

/** A name with several addresses fails with one error for each. */
function firstOf(thrown: unknown): Error {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  return error instanceof Error ? error : new Error(String(error))
}

/** Opens a connection and closes it. Rejects with the socket's error, or at the deadline. */
async function openPort(address: { readonly host: string; readonly port: number }): Promise<void> {
  const socket = connect(address)
  const opened = new Promise<void>((resolve, reject) => {
    socket.once('connect', () => resolve())
    socket.once('error', reject)
  })
  try {
    await within(stepMs, 'no answer', opened)
  } finally {
    socket.on('error', () => undefined)
    socket.destroy()
  }
}

function addressOf({ hostname, port }: URL, standard: number) {
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || standard) }
}
