import { Duplex, PassThrough } from 'node:stream'
import { test } from 'tap'
import { type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import { type SessionFrames, sessionFrames } from '../../daemon/sessions/session-frames.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { transferVolume } from './volume-transfer.ts'

const { input, output, end, status, request } = sessionChannels
const copy = { uid: 'uid-pv', move: '0123abcd', round: 1, from: 'pi-1', to: 'pi-2', bytesPerSecond: 2 ** 40 }
const whole: SessionStatus = { state: 'ended' }

type Part = (frames: SessionFrames) => Promise<void>

/** Two nodes that do their parts, and the controller between them. */
function transfer(parts: { readonly 'pi-1': Part; readonly 'pi-2': Part }, rate = copy.bytesPerSecond) {
  const clock = fakeClock()
  const requests: unknown[] = []
  const passed: number[] = []
  const sessions = {
    async open(node: string): Promise<Duplex> {
      const [there, back] = [new PassThrough(), new PassThrough()]
      const own = sessionFrames(Duplex.from({ readable: there, writable: back }))
      const play = async () => {
        const first = await own.next()
        requests.push({ node, channel: first?.channel, ...(parseJson(first?.payload.toString() ?? '') as object) })
        await parts[node === 'pi-1' ? 'pi-1' : 'pi-2'](own)
      }
      play().catch(() => undefined)
      return Duplex.from({ readable: back, writable: there })
    },
  }
  const moving = { ...copy, bytesPerSecond: rate, progress: (bytes: number) => void passed.push(bytes) }
  const done = transferVolume(moving, { sessions, clock }, new AbortController().signal)
  done.catch(() => undefined)
  return { done, requests, passed, clock }
}

const report = (frames: SessionFrames, answer: SessionStatus) => frames.sendText(status, JSON.stringify(answer))

/** Takes what comes, and is done when all is there. */
function taking(pieces: string[], answer = whole): Part {
  return async (frames) => {
    await report(frames, { state: 'started' })
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      if (frame.channel === input) pieces.push(frame.payload.toString())
      if (frame.channel === end) return report(frames, answer)
    }
    pieces.push('cut')
  }
}

const sending: Part = async (frames) => {
  await report(frames, { state: 'started' })
  for (const piece of ['a', 'b', 'c']) await frames.send(output, Buffer.from(piece))
  await frames.send(end, Buffer.of(output))
  await report(frames, whole)
}

test('what one node sends is passed on to the other, with the end of a whole copy', async (t) => {
  const pieces: string[] = []
  const { done, requests, passed } = transfer({ 'pi-1': sending, 'pi-2': taking(pieces) })
  await done
  t.equal(pieces.join(''), 'abc')
  t.equal(passed.at(-1), 3)
  const volume = { uid: 'uid-pv', move: '0123abcd', round: 1 }
  t.same(requests, [
    { node: 'pi-2', channel: request, volume: { ...volume, direction: 'receive' } },
    { node: 'pi-1', channel: request, volume: { ...volume, direction: 'send' } },
  ])
})

test('a copy that the sender does not end is not ended for the receiver', async (t) => {
  for (const stop of [
    async (frames: SessionFrames) => frames.end(),
    async (frames: SessionFrames) =>
      report(frames, { state: 'ended', reason: 'InternalError', message: 'cannot read' }),
    async (frames: SessionFrames) => frames.destroy(),
  ]) {
    const pieces: string[] = []
    const broken: Part = async (frames) => {
      await report(frames, { state: 'started' })
      await frames.send(output, Buffer.from('a'))
      await stop(frames)
    }
    await t.rejects(transfer({ 'pi-1': broken, 'pi-2': taking(pieces) }).done)
    t.notOk(pieces.includes('c'))
  }
})

test('a node that refuses, or fails at its end, is named with its reason', async (t) => {
  const refusing: Part = (frames) => report(frames, { state: 'refused', message: 'no order asks for it' })
  await t.rejects(transfer({ 'pi-1': refusing, 'pi-2': taking([]) }).done, {
    message: 'node "pi-1": no order asks for it',
  })
  await t.rejects(transfer({ 'pi-1': sending, 'pi-2': refusing }).done, {
    message: 'node "pi-2": no order asks for it',
  })
  const full: SessionStatus = { state: 'ended', reason: 'InternalError', message: 'no space' }
  await t.rejects(transfer({ 'pi-1': sending, 'pi-2': taking([], full) }).done, { message: 'node "pi-2": no space' })
})

test('a copy waits where it is faster than its rate', async (t) => {
  const pieces: string[] = []
  const { done, clock } = transfer({ 'pi-1': sending, 'pi-2': taking(pieces) }, 4)
  let isDone = false
  const ended = done.then(() => {
    isDone = true
  })
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  t.notOk(isDone)
  while (!isDone) await clock.advance(250)
  await ended
  t.equal(pieces.join(''), 'abc')
})
