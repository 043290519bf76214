import { createServer } from 'node:http'
import { Duplex, PassThrough } from 'node:stream'
import { test } from 'tap'
import { sessionChannels } from '../../api/sessions.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { sessionDuplex } from '../../daemon/sessions/session-duplex.ts'
import { sessionFrames } from '../../daemon/sessions/session-frames.ts'
import { nodeDoctor } from './node-doctor.ts'

type AgentAnswer = { readonly status: number; readonly body: string }

/** Sessions of a node whose agent answers so to the only path that it expects. */
function answeringNode({ status, body }: AgentAnswer) {
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/doctor' ? status : 500).end(body)
  })
  const connected = () => {
    const [there, back] = [new PassThrough(), new PassThrough()]
    const frames = sessionFrames(Duplex.from({ readable: there, writable: back }))
    const serve = async () => {
      await frames.next()
      const stream = sessionDuplex(frames, { receive: sessionChannels.input, send: sessionChannels.output })
      stream.on('error', () => undefined)
      await frames.sendText(sessionChannels.status, JSON.stringify({ state: 'started' }))
      server.emit('connection', stream)
    }
    void serve()
    return Duplex.from({ readable: back, writable: there })
  }
  return { open: async () => connected(), awaits: () => false, connect: () => false }
}

const by = { identity: { user: 'ada', groups: [] }, signal: new AbortController().signal }
const examine = (given: AgentAnswer) => nodeDoctor({ sessions: answeringNode(given), clock })('pi-1', by)
const finding = { check: 'clock', verdict: 'problem', found: 'It is 1970', remedy: 'Set it', fix: 'Write a file' }
const report = (findings: readonly object[]) => JSON.stringify({ kind: 'DoctorReport', time: 'now', findings })

test('the findings of the machine are given, and nothing else of its answer', async (t) => {
  const body = report([{ ...finding, more: '<script>' }])
  t.same(await examine({ status: 200, body }), { time: 'now', findings: [finding] })
})

test('a report is cut to what a page can show', async (t) => {
  const many = Array.from({ length: 500 }, () => ({ ...finding, found: 'x'.repeat(5_000), remedy: undefined }))
  const { findings } = await examine({ status: 200, body: report(many.slice(0, 40)) })
  t.equal(findings[0]?.found.length, 2_000)
  t.equal((await examine({ status: 200, body: report(many.map(() => finding)) })).findings.length, 200)
  const long = { message: /gave no report/, cause: { message: /longer than 262144 bytes/ } }
  await t.rejects(examine({ status: 200, body: report(many.slice(0, 60)) }), long)
})

test('an older agent, a failure and an invalid report are different errors', async (t) => {
  await t.rejects(examine({ status: 404, body: 'Nothing here' }), { reason: 'NotFound', message: /too old/ })
  for (const given of [
    { status: 500, body: 'broken' },
    { status: 200, body: '[]' },
    { status: 200, body: '' },
  ])
    await t.rejects(examine(given), { reason: 'ServiceUnavailable', message: /node "pi-1" gave no report/ })
})
