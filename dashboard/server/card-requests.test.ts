/** What Raspberry Pi Imager asks for, over a real port. Needs xz. */
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { encodeToken, nodeBootstrapGroup, type TokenParts, type TokenUsage } from '../../api/node/bootstrap-token.ts'
import { offerCard } from '../../broker-controller/cards/offered/offer-card.ts'
import { encodeHead } from '../../broker-controller/cards/offered/offered-card.ts'
import { offeredCards } from '../../broker-controller/cards/offered/offered-cards.ts'
import { memoryStore } from '../../broker-controller/store/memory-store.ts'
import { startApi } from '../../broker-controller/testing/api-under-test.ts'
import { madeCard, madeFat, putFiles } from '../../broker-controller/testing/made-card.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { openDashboard } from './dashboard.ts'
import { servedDashboard } from './dashboard-requests.ts'

const token = { id: 'abcdef', secret: '0123456789abcdef' }
const listPath = '/ui/cards/os_list.json?token=abcdef.0123456789abcdef'
const imagePath = '/ui/cards/raspios.img.xz?token=abcdef.0123456789abcdef'

type Answer = { readonly code: number; readonly headers: NodeJS.Dict<string | string[]>; readonly bytes: Buffer }

async function aController(t: Test, { isStarting = false } = {}) {
  const folder = testFolder(t)
  const log = quietLog(t)
  const store = memoryStore({ clock })
  const system = {
    'cmdline.txt': 'root=x',
    'config.txt': 'auto_initramfs=1',
    'issue.txt': 'Raspberry Pi reference 2025-12-04\nGenerated using pi-gen\n',
    'kernel8.img': 'k',
  }
  const source = join(folder, 'raspios.img')
  await writeFile(source, madeCard(await putFiles(madeFat(), system)))
  await offerCard(
    {
      source,
      target: join(folder, 'raspios.card'),
      isReplaced: false,
      isReadOnly: false,
      packages: [],
      nowMs: clock.wallMs(),
    },
    { signal: new AbortController().signal, progress: () => undefined },
  )
  const dashboard = openDashboard({
    store,
    clock,
    log,
    access: {
      decide: async () => ({ allowed: false, reason: '' }),
      rulesOf: () => [],
      rulesOfRole: () => undefined,
      revision: () => 0,
    },
    cards: offeredCards(folder, log),
    files: { answer: async () => undefined },
    fleet: { stream: async function* () {}, history: () => undefined, run: async () => undefined },
    authority: () => ({
      trusted: 'PEM',
      caHash: `sha256:${'a'.repeat(64)}`,
      server: isStarting ? undefined : 'https://pi:6443',
    }),
    version: '0.1.0',
  })
  const api = await startApi({ log, over: { store, dashboard: servedDashboard(dashboard) } })
  t.teardown(() => api.stop())
  const ask = (path: string, headers: { readonly [name: string]: string } = {}, method = 'GET') =>
    new Promise<Answer>((resolve, reject) => {
      // Node.js compares the certificate with the header Host otherwise.
      const options = { method, ca: api.authority.certificate, servername: 'localhost', headers, agent: false }
      const asked = request(new URL(path, api.url), options, async (answer) => {
        const pieces: Buffer[] = []
        for await (const piece of answer) pieces.push(piece as Buffer)
        resolve({ code: answer.statusCode ?? 0, headers: answer.headers, bytes: Buffer.concat(pieces) })
      })
      asked.once('error', reject)
      asked.end()
    })
  const give = (more: { expiration?: string; groups?: readonly string[] } = {}, parts: TokenParts = token) => {
    const usages: readonly TokenUsage[] = ['authentication', 'signing']
    return store.create('secrets', encodeToken({ ...parts, usages, groups: [nodeBootstrapGroup], ...more }))
  }
  return { folder, ask, give, log, api }
}

test('the list names each image at the address that Imager used, and the image has the token of that address', async (t) => {
  const { ask, give, api, log } = await aController(t)
  await give({ expiration: '2099-01-01T00:00:00Z' })
  const { code, headers, bytes } = await ask(listPath, { host: 'fleet.example.org' })
  t.match(
    { code, headers },
    { code: 200, headers: { 'content-type': 'application/json', 'cache-control': 'no-store' } },
  )
  const [entry] = JSON.parse(String(bytes)).os_list
  t.match(entry, {
    name: 'Raspberry Pi reference 2025-12-04 for pi:6443',
    url: `https://fleet.example.org${imagePath}`,
    extract_sha256: '', // Imager keeps no copy of the image with its token.
    init_format: 'systemd',
  })
  const image = await ask(imagePath)
  t.match(image, { code: 200, headers: { 'content-length': String(entry.image_download_size) } })
  const unpacked = execFileSync('xz', ['--decompress', '--stdout'], { input: image.bytes, maxBuffer: 1e8 })
  t.equal(unpacked.length, entry.extract_size)
  t.match(
    unpacked.toString('latin1'),
    'The token expires at 2099-01-01T00:00:00Z.\ncontroller: https://pi:6443\ntoken: abcdef.0123456789abcdef\ncaHash: sha256:aaaa',
  )
  const { code: own, bytes: ownList } = await ask(listPath)
  t.equal(own, 200)
  t.match(JSON.parse(String(ownList)).os_list, [{ url: `${api.url}${imagePath}` }])
  t.notMatch(JSON.stringify(log.lines), token.secret, 'the token is not logged')
})

test('a download that was cut off goes on, and HEAD sends no bytes', async (t) => {
  const { ask, give } = await aController(t)
  await give()
  const whole = await ask(imagePath)
  const total = whole.bytes.length
  const rest = await ask(imagePath, { range: 'bytes=1000-' })
  t.match(rest, { code: 206, headers: { 'content-range': `bytes 1000-${total - 1}/${total}` } })
  t.ok(rest.bytes.equals(whole.bytes.subarray(1000)))
  t.match(await ask(imagePath, { range: `bytes=${total}-` }), {
    code: 416,
    headers: { 'content-range': `bytes */${total}` },
  })
  t.match(await ask(imagePath, { range: 'bytes=0-9' }), { code: 200 }, 'other ranges are not understood, and left out')
  const head = await ask(imagePath, {}, 'HEAD')
  t.match(head, { code: 200, headers: { 'content-length': String(total) }, bytes: Buffer.alloc(0) })
})

test('a large image does not use up what its address may ask: a download that was cut off goes on at once', async (t) => {
  const { folder, ask, give } = await aController(t)
  const card = { system: 'x', initFormat: 'systemd', size: 1, madeMs: 0, before: 1, behind: 8 * 2 ** 20 } as const
  const parts = [encodeHead(card), Buffer.alloc(card.before), Buffer.alloc(card.behind)]
  await writeFile(join(folder, 'raspios.card'), Buffer.concat(parts))
  await give()
  const whole = await ask(imagePath)
  t.match(await ask(imagePath, { range: `bytes=${whole.bytes.length - 100}-` }), { code: 206 })
  t.match(await ask(listPath), { code: 200 })
})

test('without a token for nodes that is valid nothing is shown', async (t) => {
  const { ask, give, log } = await aController(t)
  const refused = async (path: string, reason: RegExp) => {
    const { code, bytes } = await ask(path)
    t.equal(code, 401, path)
    t.match(JSON.parse(String(bytes)).message, reason)
  }
  await refused(listPath, /open the link on the dashboard again/)
  await refused('/ui/cards/os_list.json', /open the link/)
  await refused('/ui/cards/os_list.json?token=x', /open the link/)
  await give({ expiration: '2020-01-01T00:00:00Z' })
  await refused(imagePath, /bootstrap token abcdef expired at 2020-01-01T00:00:00Z/)
  await refused(imagePath.replace('0123', '9999'), /bootstrap token abcdef is not known here/)
  await give({ groups: ['system:bootstrappers:others'] }, { id: 'others', secret: token.secret })
  await refused(imagePath.replace('abcdef.', 'others.'), /token others is not for nodes/)
  t.notMatch(JSON.stringify(log.lines), token.secret)
})

test('an address that tries tokens has to wait', async (t) => {
  const { ask } = await aController(t)
  const codes: number[] = []
  for (let tries = 0; tries < 25; tries++) codes.push((await ask('/ui/cards/os_list.json?token=x')).code)
  t.equal(codes[0], 401)
  t.equal(codes.at(-1), 429)
})

test('what is not there is not found, nothing is changed, and no other Host is named', async (t) => {
  const { ask, give } = await aController(t)
  await give()
  for (const path of ['none.img.xz', '..%2Fraspios.img.xz', 'raspios.card', '']) {
    t.match(await ask(`/ui/cards/${path}?token=abcdef.0123456789abcdef`), { code: 404 }, path)
  }
  t.match(await ask(listPath, {}, 'POST'), { code: 405 })
  for (const host of ['a.example/x', 'user@a.example', 'a b'])
    t.match(await ask(listPath, { host }), { code: 400 }, host)
  const starting = await aController(t, { isStarting: true })
  await starting.give()
  t.match(await starting.ask(listPath), { code: 503 })
})
