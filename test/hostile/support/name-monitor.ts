/**
 * A program of its own, in the network namespace of a node: asks its name server ten times a second, by UDP and TCP in turn, while a
 * test attacks. Prints one JSON line when its standard input ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { dnsQuestion, seenAnswer } from '../../../agent/network/testing/dns-client.ts'
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import { unstalledClock } from '../../../daemon/testing/unstalled-clock.ts'
import { inSpace } from '../../support/machine-commands.ts'

/**
 * `tookMs`: of the question that was answered, without the time in which the program got no turn; undefined: none was. `lost`: questions
 * before it without an answer: a flood fills the socket of the name server, and resolvers ask again for that reason.
 */
export type NameSample = {
  readonly over: 'udp' | 'tcp'
  readonly tookMs?: number
  readonly address?: string
  readonly lost: number
}

const everyMs = 100
/** Resolvers wait for some seconds; this one sees the loss sooner. */
const askAgainMs = 1_000
const mostAsked = 5

/** Samples of the time that `attack` takes. */
export async function namesDuring(
  space: string,
  name: string,
  attack: () => Promise<void>,
): Promise<readonly NameSample[]> {
  const [file = '', ...args] = inSpace(space, process.execPath, fileURLToPath(import.meta.url), name)
  const monitor: ChildProcess = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(monitor, 'exit')
  if (monitor.stdout === null) throw new Error('The monitor prints nothing')
  const lines = createInterface({ input: monitor.stdout })[Symbol.asyncIterator]()
  await lines.next()
  try {
    await attack()
  } finally {
    monitor.stdin?.end()
  }
  const samples: readonly NameSample[] = JSON.parse((await lines.next()).value ?? '[]')
  await exit
  return samples
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , name = ''] = process.argv
  const { monotonicMs } = unstalledClock()
  const samples: NameSample[] = []
  let ended = false
  process.stdin.resume().once('end', () => {
    ended = true
  })
  const sample = async (over: NameSample['over']): Promise<NameSample> => {
    for (let lost = 0; lost < mostAsked; lost++) {
      const beganMs = monotonicMs()
      const answer = await (over === 'udp' ? askUdp(name) : askTcp(name)).catch(() => undefined)
      const address = answer && seenAnswer(answer).answers[0]?.data
      if (address !== undefined) return { over, tookMs: monotonicMs() - beganMs, address, lost }
    }
    return { over, lost: mostAsked }
  }
  process.stdout.write('started\n')
  for (let turn = 0; !ended; turn++) {
    const over = turn % 2 === 0 ? 'udp' : 'tcp'
    const nextMs = performance.now() + everyMs
    samples.push(await sample(over))
    await pause(Math.max(0, nextMs - performance.now()))
  }
  process.stdout.write(`${JSON.stringify(samples)}\n`)
}

async function askUdp(name: string): Promise<Buffer> {
  const socket = createSocket('udp4')
  try {
    socket.send(dnsQuestion(name, 'A'), 53, nodeDnsAddress)
    const [message] = await once(socket, 'message', { signal: AbortSignal.timeout(askAgainMs) })
    return message
  } finally {
    socket.close()
  }
}

async function askTcp(name: string): Promise<Buffer> {
  const question = dnsQuestion(name, 'A')
  const socket = connect({ host: nodeDnsAddress, port: 53 })
  try {
    socket.write(Buffer.concat([Buffer.of(0, question.length), question]))
    const [message] = await once(socket, 'data', { signal: AbortSignal.timeout(askAgainMs) })
    return message.subarray(2)
  } finally {
    socket.destroy()
  }
}
