import { test } from 'tap'
import { sessionChannels } from '../../api/sessions.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { type NodePart, playedNodes, reportFacts, reportStatus, sendingAll } from '../testing/played-nodes.ts'
import { sendingNode, takingNode } from './node-answers.ts'

const { signal } = new AbortController()
const list = { list: { path: '/mnt' } }

function from(part: NodePart) {
  const { sessions, requests } = playedNodes({ 'pi-1': part })
  return { needs: { sessions, clock: fakeClock() }, requests }
}

async function all(pieces: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const piece of pieces) text += piece.toString()
  return text
}

test('what a node sends is read to its announced end, with what it reports', async (t) => {
  const { needs, requests } = from(sendingAll(['a', 'b'], { contentBytes: 7 }))
  const node = await sendingNode('pi-1', list, needs, signal)
  t.equal(await all(node.pieces()), 'ab')
  t.same(node.facts(), { contentBytes: 7 })
  t.same(requests, [{ node: 'pi-1', wanted: { backup: list } }])
  node.close()
})

test('what is not announced as all is not taken for all', async (t) => {
  const parts: readonly [NodePart, RegExp][] = [
    [async (frames) => frames.end(), /^node "pi-1": the stream was cut$/],
    [(frames) => reportStatus(frames, { state: 'ended' }), /ended before all was sent/],
    [
      (frames) => reportStatus(frames, { state: 'ended', reason: 'InternalError', message: 'the folder is away' }),
      /^node "pi-1": the folder is away$/,
    ],
    // The end of another channel.
    [
      async (frames) => {
        await frames.send(sessionChannels.end, Buffer.of(sessionChannels.input))
        frames.end()
      },
      /was cut/,
    ],
  ]
  for (const [stop, message] of parts) {
    const { needs } = from(async (frames, wanted) => {
      await reportStatus(frames, { state: 'started' })
      await frames.send(sessionChannels.output, Buffer.from('a'))
      await stop(frames, wanted)
    })
    const node = await sendingNode('pi-1', list, needs, signal)
    await t.rejects(all(node.pieces()), { message })
    node.close()
  }
})

test('a node that refuses, is away or does not answer is named with the reason', async (t) => {
  const refusing = from((frames) => reportStatus(frames, { state: 'refused', message: 'it is too old' }))
  await t.rejects(sendingNode('pi-1', list, refusing.needs, signal), { message: 'node "pi-1": it is too old' })
  await t.rejects(sendingNode('pi-2', list, refusing.needs, signal), { message: 'node "pi-2" is not connected' })
  const silent = from(() => new Promise(() => undefined))
  const waiting = t.rejects(sendingNode('pi-1', list, silent.needs, signal), {
    message: /node "pi-1" did not answer/,
  })
  await silent.needs.clock.advance(15_000)
  await waiting
  const nonsense = from((frames) => frames.sendText(sessionChannels.status, '{"state":5}'))
  await t.rejects(sendingNode('pi-1', list, nonsense.needs, signal), { message: /the stream was cut/ })
})

test('what is sent to a node fails with its reason as soon as it has ended', async (t) => {
  const taken: string[] = []
  const { needs } = from(async (frames) => {
    await reportStatus(frames, { state: 'started' })
    await reportFacts(frames, { mark: 'm-1' })
    taken.push((await frames.next())?.payload.toString() ?? '')
    await reportStatus(frames, { state: 'ended', reason: 'InternalError', message: 'the disk is full' })
  })
  const node = await takingNode('pi-1', list, needs, signal)
  t.same(await node.reported('mark'), { mark: 'm-1' })
  await node.send(Buffer.from('data'))
  await t.rejects(node.ended, { message: 'node "pi-1": the disk is full' })
  await t.rejects(node.reported('removed'), { message: 'node "pi-1": the disk is full' })
  await t.rejects(node.send(Buffer.alloc(2 ** 20)), { message: 'node "pi-1": the disk is full' })
  t.same(taken, ['data'])
  node.close()
})

test('a node that has ended well takes nothing more, and what it reports otherwise counts as nothing', async (t) => {
  const { needs } = from(async (frames) => {
    await reportStatus(frames, { state: 'started' })
    await frames.sendText(sessionChannels.request, '{"removed":"many"}')
    await frames.sendText(sessionChannels.request, 'x')
    await reportStatus(frames, { state: 'ended' })
  })
  const node = await takingNode('pi-1', list, needs, signal)
  await node.ended
  await t.rejects(node.reported('removed'), { message: 'node "pi-1": it ended early' })
  node.close()
})
