import { PassThrough } from 'node:stream'
import { type Test, test } from 'tap'
import { isApiError } from '../../api/api-error.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { defaultSessionBoardLimits, sessionBoard } from './session-board.ts'

test('a session is requested once, connected once by its node, and carries what is written', async (t) => {
  const { board, open } = aBoard(t)
  let notified = 0
  board.onRequest(() => notified++)
  const opening = open('pi-1')
  t.equal(notified, 1)
  const [request] = board.takeRequests()
  t.match(request, { node: 'pi-1' })
  t.same(board.takeRequests(), [])
  const id = request?.id ?? ''
  t.same([board.awaits('pi-1', id), board.awaits('pi-2', id), board.awaits('pi-1', 'another')], [true, false, false])
  const stranger = new PassThrough()
  t.notOk(board.connect('pi-2', id, stranger), 'another node has no part in it')
  t.ok(stranger.destroyed)
  t.notOk(board.connect('pi-1', 'another id', new PassThrough()))
  const end = new PassThrough()
  t.ok(board.connect('pi-1', id, end))
  t.notOk(board.awaits('pi-1', id))
  const second = new PassThrough()
  t.notOk(board.connect('pi-1', id, second), 'a session is connected once')
  t.ok(second.destroyed)
  const stream = await opening
  end.write('hello')
  t.equal(String(await new Promise((resolve) => stream.once('data', resolve))), 'hello')
  t.equal(board.size, 1)
  end.destroy()
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(board.size, 0)
})

test('a session ends with the connection of its node, waiting or connected, and others go on', async (t) => {
  const { board, open, connected } = aBoard(t)
  const waiting = open('pi-1')
  const stream = await connected('pi-1')
  const other = await connected('pi-2')
  stream.on('error', () => undefined)
  board.disconnected('pi-1')
  await refused(t, 'ServiceUnavailable', waiting)
  t.ok(stream.destroyed)
  t.notOk(other.destroyed)
  t.equal(board.size, 1)
})

test('of a node that is away a session is refused at once', async (t) => {
  const { board, open, connected } = aBoard(t)
  await refused(t, 'ServiceUnavailable', open('pi-9'))
  board.disconnected('pi-1')
  await refused(t, 'ServiceUnavailable', open('pi-1'))
  t.same(board.takeRequests(), [])
  board.connected('pi-1')
  await connected('pi-1')
})

test('a session ends when its client goes, connected or not', async (t) => {
  const { board, open, connected } = aBoard(t)
  const client = new AbortController()
  const waiting = open('pi-1', client.signal)
  const stream = await connected('pi-1', client.signal)
  stream.on('error', () => undefined)
  client.abort()
  await refused(t, 'ServiceUnavailable', waiting)
  t.ok(stream.destroyed)
  t.equal(board.size, 0)
  t.same(board.takeRequests(), [], 'a request that was not published is withdrawn')
  await refused(t, 'ServiceUnavailable', open('pi-1', AbortSignal.abort()))
})

test('sessions are bounded in number for each node and in total', async (t) => {
  const { board, open, connected } = aBoard(t, { perNode: 2, total: 3 })
  const first = await connected('pi-1')
  await connected('pi-1')
  await refused(t, 'TooManyRequests', open('pi-1'))
  await connected('pi-2')
  await refused(t, 'TooManyRequests', open('pi-3'))
  first.destroy()
  await new Promise((resolve) => setImmediate(resolve))
  await connected('pi-3')
  t.equal(board.size, 3)
})

test('one user has a share of the sessions: of a node, and in total', async (t) => {
  const { open, connected } = aBoard(t, { perNode: 3, total: 5, ofUser: { perNode: 2, total: 3 } })
  const first = await connected('pi-1')
  await connected('pi-1')
  await refused(t, 'TooManyRequests', open('pi-1'), 'user "jane" has on node "pi-1" 2 streams, the limit is 2')
  await connected('pi-1', undefined, 'joe')
  await refused(t, 'TooManyRequests', open('pi-1', undefined, 'joe'), 'node "pi-1" has 3 streams, the limit is 3')
  await connected('pi-2')
  await refused(t, 'TooManyRequests', open('pi-3'), 'user "jane" has 3 streams, the limit is 3')
  await connected('pi-2', undefined, 'joe')
  first.destroy()
  await new Promise((resolve) => setImmediate(resolve))
  await connected('pi-3')
})

test('a user with few sessions takes the place of the newest one of the user with most, on a node and in total', async (t) => {
  const { open, connected } = aBoard(t, { perNode: 4, total: 5, ofUser: { perNode: 3, total: 4 } })
  const jane = [await connected('pi-1'), await connected('pi-1'), await connected('pi-1')]
  for (const stream of jane) stream.on('error', () => undefined)
  const ended = () => jane.map(({ destroyed }) => destroyed)
  await connected('pi-1', undefined, 'joe')
  t.same(ended(), [false, false, false])
  await connected('pi-1', undefined, 'kim')
  t.same(ended(), [false, false, true])
  await refused(t, 'TooManyRequests', open('pi-1', undefined, 'kim'), 'node "pi-1" has 4 streams, the limit is 4')
  await connected('pi-2', undefined, 'lee')
  await connected('pi-2', undefined, 'max')
  t.same(ended(), [false, true, true], 'there were five')
})

test('a session that ends for another user before the node has connected it may be tried again', async (t) => {
  const { open } = aBoard(t, { perNode: 2, total: 2, ofUser: { perNode: 2, total: 2 } })
  void open('pi-1').catch(() => undefined)
  const waiting = refused(t, 'TooManyRequests', open('pi-1'), 'users with fewer streams need one of user "jane"')
  void open('pi-1', undefined, 'joe').catch(() => undefined)
  await waiting
})

test('sessions are bounded in time: for the node to connect, and as a whole', async (t) => {
  const { board, clock, open, connected } = aBoard(t)
  const slow = open('pi-1')
  const stream = await connected('pi-2')
  stream.on('error', () => undefined)
  const answer = refused(t, 'ServiceUnavailable', slow)
  await clock.advance(defaultSessionBoardLimits.connectMs + 1)
  await answer
  t.notOk(stream.destroyed)
  await clock.advance(defaultSessionBoardLimits.longestMs)
  t.ok(stream.destroyed)
  t.equal(board.size, 0)
})

test('a closed board ends its sessions and opens none', async (t) => {
  const { board, open, connected } = aBoard(t)
  const stream = await connected('pi-1')
  stream.on('error', () => undefined)
  board.close()
  t.ok(stream.destroyed)
  await refused(t, 'ServiceUnavailable', open('pi-1'))
})

function aBoard(t: Test, limits: Partial<typeof defaultSessionBoardLimits> = {}) {
  const clock = fakeClock()
  const board = sessionBoard({ clock, limits: { ...defaultSessionBoardLimits, ...limits } })
  t.teardown(() => board.close())
  for (const node of ['pi-1', 'pi-2', 'pi-3']) board.connected(node)
  const open = (node: string, signal = new AbortController().signal, user = 'jane') =>
    board.open(node, { user, signal })
  return {
    board,
    clock,
    open,
    async connected(node: string, signal?: AbortSignal, user?: string) {
      const opening = open(node, signal, user)
      const request = board.takeRequests().at(-1)
      const end = new PassThrough()
      end.on('error', () => undefined)
      t.ok(board.connect(node, request?.id ?? '', end))
      return opening
    },
  }
}

async function refused(
  t: Test,
  reason: 'ServiceUnavailable' | 'TooManyRequests',
  answer: Promise<unknown>,
  because = '',
) {
  const error = await answer.then(
    () => undefined,
    (error: unknown) => error,
  )
  t.ok(isApiError(error, reason), String(error))
  t.ok(String(error).includes(because), String(error))
}

test('a session whose request cannot be published is refused, and no longer counts', async (t) => {
  const { board, open } = aBoard(t)
  board.onRequest(() => {
    throw new Error('no broker')
  })
  await t.rejects(open('pi-1'), { message: 'no broker' })
  t.equal(board.size, 0)
  t.same(board.takeRequests(), [])
})
