/** pods/exec and pods/attach, over WebSocket and SPDY (k8s.io/apimachinery/pkg/util/remotecommand/constants.go). */
import { ApiError } from '../../../api/api-error.ts'
import { type SessionStatus, sessionChannels } from '../../../api/sessions.ts'
import type { SessionFrames } from '../../../daemon/sessions/session-frames.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { isSwitchedOn } from '../wire/query.ts'
import type { ByteChannel } from './byte-channel.ts'
import { assertAssigned, containerOfPod, presentPod } from './container-of-pod.ts'
import { openNodeSession, sessionStatusIn } from './node-session.ts'
import { spdyCommand } from './spdy-command.ts'
import { acceptUpgrade, chosenProtocol } from './upgrade.ts'

const channels = sessionChannels
const inside = ['v5.channel.k8s.io', 'v4.channel.k8s.io']
/** Before v4 only failures were reported, as a text: clients of WebSockets still ask for it. */
const withTextErrors = ['', 'channel.k8s.io', 'base64.channel.k8s.io']
const served = { websocket: [...inside, 'v4.base64.channel.k8s.io', ...withTextErrors], 'spdy/3.1': inside }

/** Runs a command in a container. Throws the ApiError of a refusal, before the connection leaves HTTP. */
export async function execInPod(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const command = request.query.getAll('command')
  if (command.length === 0) throw new ApiError('BadRequest', 'you must specify at least 1 command for the container')
  return remoteCommand(request, needs, (options) => ({ exec: { ...options, command } }))
}

/** Connects to the first process of a container. */
export async function attachToPod(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  return remoteCommand(request, needs, (options) => ({ attach: options }))
}

type Options = ReturnType<typeof optionsIn> & { readonly container: string }

async function remoteCommand(
  request: ResourceRequest,
  needs: ResourceNeeds,
  wanted: (options: Options) => Parameters<typeof openNodeSession>[1],
): Promise<ApiResponse> {
  const pod = await presentPod(request, needs)
  const container = containerOfPod(pod, request.query.get('container') ?? '')
  assertAssigned(pod)
  const options = { ...optionsIn(request.query), container }
  const protocol = chosenProtocol(request.offered, served)
  const frames = await openNodeSession(pod, wanted(options), request, needs)
  return {
    kind: 'connection',
    async take(connection) {
      const accepted = await acceptUpgrade(connection, protocol)
      const isSpdy = protocol.upgrade === 'spdy/3.1'
      const client = accepted && isSpdy ? await spdyCommand(accepted, options).catch(() => undefined) : accepted
      if (client === undefined) frames.destroy()
      else await relay(client, frames, withTextErrors.includes(protocol.protocol) ? errorText : json)
    },
  }
}

function optionsIn(query: URLSearchParams) {
  const tty = isSwitchedOn(query, 'tty')
  const [stdin, stdout] = [isSwitchedOn(query, 'stdin'), isSwitchedOn(query, 'stdout')]
  // A terminal has one output.
  const stderr = isSwitchedOn(query, 'stderr') && !tty
  if (stdin || stdout || stderr) return { stdin, stdout, stderr, tty }
  throw new ApiError('BadRequest', 'you must specify at least 1 of stdin, stdout, stderr')
}

/** Resolves when both ends are closed. */
async function relay(client: ByteChannel, frames: SessionFrames, written: WriteStatus): Promise<void> {
  const toNode = passInput(client, frames).catch(() => undefined)
  try {
    const end = written(await passOutput(client, frames))
    if (end !== undefined) await client.send(Buffer.concat([Buffer.of(channels.status), end]))
    // Closing gives the client a limited time for what is left.
    await client.flushed()
    client.close()
  } catch {
    // The client is gone.
    client.destroy()
  } finally {
    frames.destroy()
  }
  await toNode
}

/** Until the client is gone: that ends the session. */
async function passInput(client: ByteChannel, frames: SessionFrames): Promise<void> {
  try {
    for (let bytes = await client.next(); bytes !== undefined; bytes = await client.next()) {
      const channel = bytes[0]
      const payload = bytes.subarray(1)
      // Empty data does not end it: clients open their channels so.
      if ((channel === channels.input || channel === channels.resize) && payload.length > 0) {
        await frames.send(channel, payload)
      } else if (channel === channels.end && payload[0] === channels.input) {
        await frames.send(channel, payload.subarray(0, 1))
      }
    }
  } finally {
    frames.destroy()
  }
}

/** Resolves with the Status that ends the stream; rejects where the client is gone. */
async function passOutput(client: ByteChannel, frames: SessionFrames): Promise<EndStatus> {
  for (;;) {
    const frame = await frames.next().catch(() => undefined)
    if (frame === undefined) return failure('the connection to the node ended')
    const { channel, payload, message } = frame
    if (channel === channels.output || channel === channels.errorOutput) await client.send(message)
    else if (channel === channels.status) return endOf(sessionStatusIn(payload))
  }
}

/** As the kubelet ends a command (k8s.io/kubelet/pkg/cri/streaming/remotecommand/exec.go). */
function endOf(status: SessionStatus | undefined): EndStatus {
  if (status === undefined) return failure('the node ended the stream without a status')
  const { exitCode = 0, message } = status
  if (message !== undefined) return failure(`error executing command in container: ${message}`)
  if (exitCode === 0) return { metadata: {}, status: 'Success' }
  return {
    metadata: {},
    status: 'Failure',
    reason: 'NonZeroExitCode',
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
  }
}

function failure(because: string): EndStatus {
  const message = `Internal error occurred: ${because}`
  const details = { causes: [{ message: because }] }
  return { metadata: {}, status: 'Failure', reason: 'InternalError', message, details, code: 500 }
}

/** The Status that ends a stream. */
type EndStatus = { readonly status: 'Success' | 'Failure'; readonly message?: string } & {
  readonly [field: string]: unknown
}

/** undefined: nothing is sent. */
type WriteStatus = (status: EndStatus) => Uint8Array | undefined

const json: WriteStatus = (status) => Buffer.from(JSON.stringify(status))

const errorText: WriteStatus = ({ status, message = '' }) => (status === 'Success' ? undefined : Buffer.from(message))
