import { test } from 'tap'
import { chartPath } from './chart-path.ts'
import { shownConditions } from './condition-view.ts'
import { findingLevel, sortedFindings } from './doctor-view.ts'
import { inventoryFacts } from './inventory-view.ts'
import { imagerLink, joinFile, joinLine } from './join-texts.ts'
import { logLines } from './log-lines.ts'
import { lostLinks } from './lost-links.ts'
import { maintenanceView } from './maintenance-view.ts'
import { hrefOf, listPlace, placeOf } from './places.ts'
import { rolloutView } from './rollout-view.ts'
import { columnsIn, drawnRows } from './virtual-rows.ts'
import { judgedPool, sortedVolumes } from './volume-view.ts'

test('every place has an address that leads back to it', async (t) => {
  const places = [
    { view: 'node', name: 'pi-1' },
    { view: 'pod', namespace: 'default', name: 'web' },
    { view: 'logins' },
    listPlace('map'),
    { view: 'pods', search: 'a b&c', filters: { namespace: 'shop' } },
  ] as const
  for (const place of places) t.same(placeOf(hrefOf(place)), place)
  t.same(placeOf('#/nothing/%E0'), listPlace('fleet'))
  t.same(placeOf('#kiosk=id.secret').view, 'fleet')
})

test('of a long list the rows in the window are drawn, and a few around it', async (t) => {
  t.same(drawnRows(1_000, 50, { scrollTop: 5_000, height: 500 }), { first: 92, end: 118, above: 4_600, total: 50_000 })
  t.same(drawnRows(3, 50, { scrollTop: 0, height: 500 }), { first: 0, end: 3, above: 0, total: 150 })
  t.same(drawnRows(3, 50, { scrollTop: 90_000, height: 500 }), { first: 3, end: 3, above: 150, total: 150 })
  t.equal(columnsIn(0, 290, 12), 1)
  t.equal(columnsIn(1224, 290, 12), 4)
})

test('lines of a log come in pieces, and one without an end does not grow', async (t) => {
  t.same(logLines('', 'one\ntw'), { lines: ['one'], rest: 'tw' })
  t.same(logLines('tw', 'o\n\n'), { lines: ['two', ''], rest: '' })
  let rest = ''
  for (let piece = 0; piece < 10; piece++) rest = logLines(rest, 'x'.repeat(1_000)).rest
  t.equal(rest.length, 4_097)
  t.same(logLines(rest, 'y\nz').lines, [`${'x'.repeat(4_096)}…`])
})

test('a chart has gaps where nothing is known', async (t) => {
  const size = { width: 30, height: 10, top: 100 }
  t.equal(chartPath([0, 50, null, 100], size), 'M0 10L10 5M30 0h-1')
  t.equal(chartPath([null, null], size), '')
  t.equal(chartPath([200], size), 'M0 0h-1', 'values beyond the scale are clipped')
})

test('the map names the links that took machines down, the one with the most first', async (t) => {
  const card = (name: string, lostLink?: string) =>
    ({ name, state: lostLink === undefined ? 'ready' : 'lost', pods: 0, ...(lostLink && { lostLink }) }) as const
  t.same(lostLinks([card('a', 'hall'), card('b', 'attic'), card('c'), card('d', 'attic')]), [
    { link: 'attic', machines: 2 },
    { link: 'hall', machines: 1 },
  ])
  t.same(lostLinks([card('c')]), [])
})

test('a machine joins with the printed command or with the file', async (t) => {
  const facts = {
    server: 'https://10.0.0.1:6443',
    caHash: 'sha256:00',
    token: { id: 'abcdef', secret: '0123456789abcdef' },
  }
  const line = 'bramble-agent join https://10.0.0.1:6443 --token abcdef.0123456789abcdef --ca-hash sha256:00'
  t.equal(joinLine(facts), `sudo ${line}`)
  t.equal(joinFile(facts), `join: ${line}\n`)
})

test('Raspberry Pi Imager takes the list out of the link: a web address whose path ends in .json', async (t) => {
  const link = new URL(imagerLink('https://fleet.example:6443', { id: 'abcdef', secret: '0123456789abcdef' }))
  t.equal(link.protocol, 'rpi-imager:')
  const repo = link.searchParams.get('repo') ?? ''
  t.equal(repo, 'https://fleet.example:6443/ui/cards/os_list.json?token=abcdef.0123456789abcdef')
  // ImageWriter::isValidRepoUrl of Imager 2.
  t.match(repo, /^https?:\/\/[^ \t\r\n?#]+\.(json|rpi-imager-manifest)([?#][^ \t\r\n]*)?$/i)
})

test('conditions that need attention come first, then Ready', async (t) => {
  const condition = (type: string, status: 'True' | 'False' | 'Unknown') => ({ type, status })
  const types = (...conditions: readonly ReturnType<typeof condition>[]) =>
    shownConditions(conditions).map(({ type, level }) => `${type} ${level}`)
  t.same(
    types(condition('A', 'False'), condition('B', 'Unknown'), condition('C', 'True'), condition('Ready', 'True')),
    ['C warn', 'B idle', 'Ready good', 'A good'],
  )
  t.same(types(condition('C', 'True'), condition('Ready', 'Unknown')), ['Ready bad', 'C warn'])
})

test('findings of the doctor that need attention come first, and the others apart', async (t) => {
  const finding = (check: string, verdict: 'ok' | 'warning' | 'problem' | 'unknown') => ({ check, verdict, found: '' })
  const all = [finding('a', 'ok'), finding('b', 'warning'), finding('c', 'unknown'), finding('d', 'problem')]
  const { urgent, others } = sortedFindings(all)
  t.same(
    urgent.map(({ check }) => check),
    ['d', 'b'],
  )
  t.same(
    others.map(({ check }) => check),
    ['c', 'a'],
  )
  t.same(all.map(findingLevel), ['good', 'warn', 'idle', 'bad'])
})

test('pools and volumes that need attention have the reason, and volumes come the worst first', async (t) => {
  const pool = { id: 'p', node: 'pi-1', state: 'Ready', volumes: 1, capacityBytes: 100, availableBytes: 5 } as const
  t.equal(judgedPool(pool).level, 'good')
  t.match(judgedPool({ ...pool, availableBytes: 4 }), { level: 'warn', why: /^Less than 5 % is free/ })
  t.match(judgedPool({ ...pool, state: 'NodeNotReady' }), { level: 'warn', why: 'Its machine is not ready' })
  const missing = { id: 'q', state: 'Missing', volumes: 1 } as const
  t.match(judgedPool(missing), { level: 'bad', why: /mount its disk/ })
  const bound = { state: 'Bound', requestedBytes: 10, pods: [], pool: 'p' }
  const volumes = [
    { ...bound, claim: 'shop/fine', usedBytes: 10 },
    { ...bound, claim: 'shop/large', usedBytes: 11 },
    { ...bound, claim: 'shop/lost-disk', pool: 'q' },
    { ...bound, claim: 'shop/freed', state: 'Released' },
    { ...bound, claim: 'shop/waits', state: 'Pending' },
    { ...bound, claim: 'shop/gone', state: 'Lost' },
    { ...bound, claim: 'shop/unsaved', backupFailure: { why: 'pv/nas is full', time: '2026-11-29T03:00:00Z' } },
    { ...bound, claim: 'shop/coming', restore: { from: 'pv/nas', name: 'b', why: 'the NAS is off' } },
  ]
  t.same(
    sortedVolumes(volumes, [pool, missing], '').map(({ row, level, why }) => [row.claim, level, why]),
    [
      ['shop/lost-disk', 'bad', 'No machine has its pool'],
      ['shop/gone', 'bad', 'Lost'],
      ['shop/coming', 'bad', 'Its data does not come from its backup yet'],
      ['shop/large', 'warn', 'Uses more than it requests'],
      ['shop/waits', 'warn', 'Pending'],
      ['shop/unsaved', 'warn', 'Not backed up: pv/nas is full'],
      ['shop/fine', 'good', undefined],
      ['shop/freed', 'idle', 'Released'],
    ],
  )
  t.same(sortedVolumes(volumes, [pool], 'large').length, 1)
})

test('a rollout shows its rings, and can be paused or resumed', async (t) => {
  const ring = { name: 'canary', nodes: 4, committed: 2, failed: 0, updating: 1 }
  const status = (phase: string, more: object = {}) =>
    JSON.stringify({ phase, message: 'Ring canary', rings: [ring], stragglers: [], stragglerCount: 0, ...more })
  const of = (data: { readonly [field: string]: string }) =>
    rolloutView({ data: { rollout: '{"target":{"version":"1.5.0"}}', ...data } })
  t.equal(rolloutView({}), undefined)
  t.equal(rolloutView({ data: { rollout: '{' } }), undefined)
  t.match(of({}), { version: '1.5.0', level: 'idle', text: 'begins' })
  t.same(of({ status: status('Progressing') }), {
    ...{ version: '1.5.0', level: 'good', text: 'Progressing. Ring canary', rings: ['canary: 2 of 4, 1 updating'] },
    ...{ stragglers: '', action: 'pause' },
  })
  t.match(of({ status: status('Paused') }), { level: 'bad', action: 'resume' })
  t.match(of({ status: status('Paused'), pause: 'Paused by an operator' }), { level: 'warn', action: 'resume' })
  t.equal(of({ status: status('Complete') })?.action, undefined)
  const stragglers = Array.from({ length: 100 }, (_, at) => `pi-${at}`)
  const many = of({ status: status('Soaking', { stragglers, stragglerCount: 300 }) })
  t.match(many?.stragglers, /^pi-0, .*pi-9 and 290 more$/)
})

test('the maintenance shows what is pending and which machines need attention', async (t) => {
  const counts = { nodes: 9, securityUpdates: 3, rebootRequired: 1, due: 2, active: 1, failed: 0, unable: 0 }
  const row = (node: string, phase = '', message = '') => ({ node, phase, since: '2026-11-30T02:00:00Z', message })
  const status = (phase: string, more: object = {}) =>
    JSON.stringify({
      phase,
      message: '1 nodes are under maintenance',
      counts,
      active: [],
      failed: [],
      unable: [],
      ...more,
    })
  const of = (data: { readonly [field: string]: string }) => maintenanceView({ data: { rules: '{}', ...data } })
  t.equal(maintenanceView({}), undefined)
  t.same(of({}), { level: 'idle', text: 'begins', lines: [], action: undefined })
  t.same(of({ status: status('Working', { active: [row('pi-1', 'Draining', 'waits for web')] }) }), {
    ...{ level: 'good', text: 'Working. 1 nodes are under maintenance', action: 'pause' },
    lines: ['3 machines with security updates', '1 machine to be restarted', 'pi-1: Draining, waits for web'],
  })
  t.match(of({ status: status('Paused') }), { level: 'bad', action: 'resume' })
  t.match(of({ status: status('Paused'), pause: 'Paused by an operator' }), { level: 'warn', action: 'resume' })
  const unable = Array.from({ length: 8 }, (_, at) => row(`pi-${at}`, '', 'it does not report its updates'))
  const many = of({ status: status('Idle', { unable, counts: { ...counts, unable: 300 } }) })
  t.same(many?.lines.slice(-2), ['pi-4: it does not report its updates', 'and 295 more'])
})

test('the hardware of a machine is shown as far as it reports it', async (t) => {
  const of = (inventory: object) =>
    inventoryFacts({ metadata: { name: 'pi-1', annotations: { 'bramble.dev/inventory': JSON.stringify(inventory) } } })
  t.same(inventoryFacts({ metadata: { name: 'pi-1' } }), [])
  t.same(of({ disks: 'none' }), [], 'it cannot be read')
  t.same(of({ disks: [], links: [] }), [])
  const disk = { name: 'mmcblk0', kind: 'SD', bytes: 2 ** 35, made: '03/2021' }
  const link = { name: 'wlan0', isWireless: true, driver: 'brcmfmac' }
  t.same(of({ model: 'Pi 4', revision: 'c03115', supplyMilliamps: 5000, disks: [disk], links: [link] }), [
    ['Board', 'Pi 4, c03115'],
    ['Supply', '5000 mA'],
    ['mmcblk0', 'SD, 32 GiB, made 03/2021'],
    ['wlan0', 'Wi-Fi, brcmfmac'],
  ])
})
