import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type Test, test } from 'tap'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { dashboardFiles } from '../dashboard/server/dashboard-files.ts'
import { buildDashboard } from '../scripts/build-dashboard.ts'
import { hasChromium, openBrowser } from './support/browser.ts'
import { skipWithout } from './support/missing-parts.ts'
import { eventually } from './support/wait.ts'

const skip = skipWithout('chromium', hasChromium())
const workloads = Array.from({ length: 30 }, (_, i) => ({
  ...{ kind: 'Deployment', namespace: 'shop', wanted: 1, ready: 1, updated: 1 },
  name: `web-${i}`,
}))
const fleet = [
  { reset: { nodes: true, usage: true, requests: true, pods: true, events: true, workloads: true } },
  { nodes: { put: [{ name: 'pi-1', state: 'ready', pods: 0 }] } },
  { workloads: { put: workloads } },
  { complete: true },
]
const refusal = JSON.stringify({ message: 'Too many requests, please try again later.' })

type Answers = {
  session: number
  stream: number
  login: number
  /** Reviews of access wait for it. */
  review?: Promise<void>
}

/** The page on a server that answers what is in `answers`, which a test changes. 200: a login, with a stream of one node. */
async function aServer(t: Test, answers: Answers) {
  const folder = testFolder(t)
  await buildDashboard(process.cwd(), folder)
  const files = dashboardFiles(folder, quietLog(t))
  const streams = new Set<ServerResponse>()
  let refused = 0
  let reviews = 0
  let mostReviews = 0
  const session = { user: 'kiosk', groups: [], id: 'one', isKiosk: true, version: '0.1.0', caHash: 'sha256:00' }
  const server = createServer(async (request, response) => {
    const { url = '' } = request
    const { pathname } = new URL(url, 'http://page')
    const answer = (code: number, text = '') => void response.writeHead(code).end(code < 400 ? text : refusal)
    if (pathname === '/ui/api/session') return answer(answers.session, JSON.stringify(session))
    if (pathname.endsWith('/selfsubjectaccessreviews')) {
      mostReviews = Math.max(mostReviews, ++reviews)
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece)
      const { spec } = JSON.parse(Buffer.concat(pieces).toString())
      await answers.review
      reviews -= 1
      // A right to one object only.
      return answer(201, JSON.stringify({ status: { allowed: spec.resourceAttributes.name === 'web-7' } }))
    }
    if (pathname === '/ui/api/login') return answer(answers.login)
    if (pathname === '/ui/api/stream') {
      if (answers.stream !== 200) {
        refused += 1
        return answer(answers.stream)
      }
      streams.add(response)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const update of fleet) response.write(`data: ${JSON.stringify(update)}\n\n`)
      return undefined
    }
    const none = { acceptEncoding: undefined, ifNoneMatch: undefined }
    const found = await files.answer(pathname.slice('/ui/'.length) || 'index.html', none)
    if (found?.kind !== 'plain') return answer(404)
    return void response.writeHead(found.code, found.headers).end(found.bytes)
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port')
  return {
    refusedStreams: () => refused,
    mostReviews: () => mostReviews,
    url: `http://127.0.0.1:${address.port}/ui/`,
    cutStreams: () => {
      for (const stream of streams) stream.destroy()
    },
  }
}

const isLive = `document.querySelector('.link.connected') !== null && document.querySelectorAll('.tile').length === 1`

test('a page whose stream is refused for a while keeps its cards, and is live again by itself', { skip }, async (t) => {
  const answers = { session: 200, stream: 200, login: 200 }
  const { url, cutStreams, refusedStreams } = await aServer(t, answers)
  const page = await openBrowser(t, url)
  await page.goto(url)
  await page.until('the fleet', isLive)
  for (const code of [429, 503]) {
    const before = refusedStreams()
    answers.stream = code
    cutStreams()
    await eventually('the stream is asked for again and again', async () => refusedStreams() >= before + 2 || undefined)
    t.equal(await page.evaluate(`document.querySelectorAll('.tile').length`), 1, 'the cards stay')
    answers.stream = 200
    await page.until(`the fleet after ${code}`, isLive)
  }
})

test('a screen on a wall waits for a controller that starts', { skip }, async (t) => {
  const answers = { session: 503, stream: 503, login: 503 }
  const { url } = await aServer(t, answers)
  const page = await openBrowser(t, url)
  await page.goto(`${url}#kiosk=0123456789ab.secret`)
  await page.until('an attempt', `performance.getEntriesByName(new URL('/ui/api/session', location)).length > 0`)
  t.equal(await page.evaluate(`document.querySelector('.login')`), null, 'it does not ask for a login')
  Object.assign(answers, { session: 200, stream: 200, login: 200 })
  await page.until('the fleet', isLive)
})

test('a link that serves once is not tried again by itself: the page shows why it was refused', { skip }, async (t) => {
  const { url } = await aServer(t, { session: 401, stream: 401, login: 429 })
  const page = await openBrowser(t, url)
  await page.goto(`${url}#login=0123456789ab.secret`)
  await page.until('the reason', `document.querySelector('[role=alert]')?.textContent.includes('Too many requests')`)
})

test('a list of many rows asks a few questions about rights at a time, and shows what is allowed', {
  skip,
}, async (t) => {
  let answerAll = () => {}
  const review = new Promise<void>((resolve) => {
    answerAll = resolve
  })
  const { url, mostReviews } = await aServer(t, { session: 200, stream: 200, login: 200, review })
  const page = await openBrowser(t, url)
  await page.goto(`${url}#/workloads`)
  await page.until('the rows', `document.querySelectorAll('.row').length >= 8`)
  await eventually('questions about rights', () => mostReviews() > 0)
  answerAll()
  await page.until('the one button', `document.querySelector('.row button')?.textContent === 'Scale'`)
  t.equal(await page.evaluate(`document.querySelectorAll('.row:has(button)').length`), 1)
  t.ok(mostReviews() <= 4, `${mostReviews()} at a time`)
})
