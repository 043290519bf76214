/** The probe of a gRPC server: grpc.health.v1.Health/Check, one small message each way, so no library is needed. */
import { kubernetes } from '../../../daemon/process/version.ts'
import type { ProbeAnswer, Target } from '../../pods/probes/targets.ts'
import type { HeldSocket } from './held-socket.ts'

/** As the kubelet sends them (pkg/probe/http/request.go, userAgent). */
export const probeAgent = `kube-probe/${kubernetes.major}.${kubernetes.minor}`
export const hookAgent = `kube-lifecycle/${kubernetes.major}.${kubernetes.minor}`

/** Rejects when the connection fails. */
export async function askGrpc(target: Target & { kind: 'grpc' }, held: HeldSocket): Promise<ProbeAnswer> {
  const { host, port, service } = target
  // Loaded on demand: few pods have gRPC probes, and nothing else in the agent uses it.
  const { connect: http2Connect } = await import('node:http2')
  return new Promise((resolve, reject) => {
    const session = http2Connect(`http://${host.includes(':') ? `[${host}]` : host}:${port}`, {
      settings: { enablePush: false },
    })
    held.use(session)
    session.on('error', reject)
    // A server may push before it has read that setting: an error of such a stream, which has no other listener, would end the agent.
    session.on('stream', (pushed) => pushed.on('error', () => undefined).close())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': probeAgent,
    })
    let status = ''
    const frames: Buffer[] = []
    const note = (headers: { readonly [name: string]: unknown }) => {
      if (headers['grpc-status'] !== undefined) status = String(headers['grpc-status'])
    }
    stream.once('response', note)
    stream.once('trailers', note)
    stream.on('data', (chunk: Buffer) => void (frames.length < 16 && frames.push(chunk)))
    stream.on('error', reject)
    stream.once('end', () => {
      session.close()
      resolve(grpcAnswer(status, Buffer.concat(frames)))
    })
    stream.end(healthRequest(service))
  })
}

/** A frame (not compressed, length) around field 1, a string. */
function healthRequest(service: string): Buffer {
  const name = Buffer.from(service)
  const message = name.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.of(0x0a), varint(name.length), name])
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

function varint(number: number): Buffer {
  const bytes: number[] = []
  for (let rest = number; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest])
    bytes.push((rest & 0x7f) | 0x80)
  }
}

const servingStatus = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN']

function grpcAnswer(status: string, frame: Buffer): ProbeAnswer {
  if (status === '12') {
    return {
      result: 'failure',
      message: 'this server does not implement the grpc health protocol (grpc.health.v1.Health)',
    }
  }
  if (status !== '0') return { result: 'failure', message: `health rpc failed with status ${status || 'unknown'}` }
  // Field 1, an enum; 0 if it is missing.
  const word = servingStatus[frame[5] === 0x08 ? (frame[6] ?? 0) : 0] ?? 'UNKNOWN'
  if (word === 'SERVING') return { result: 'success', message: '' }
  return { result: 'failure', message: `service unhealthy (responded with "${word}")` }
}
