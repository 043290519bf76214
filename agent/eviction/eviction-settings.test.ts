import { test } from 'tap'
import { evictionThresholds } from './eviction-settings.ts'

test('a soft threshold has its grace period, and its minimum reclaim', async (t) => {
  const problems: string[] = []
  const { evictionHard, evictionSoft } = evictionThresholds(
    {
      evictionHard: { 'memory.available': '100Mi' },
      evictionSoft: { 'memory.available': '20%' },
      evictionSoftGracePeriod: { 'memory.available': '1m30s' },
      evictionMinimumReclaim: { 'memory.available': '5%' },
    },
    problems,
  )
  t.same(problems, [])
  t.match(evictionSoft, [{ graceMs: 90_000, value: { percentage: 20 }, minimumReclaim: { percentage: 5 } }])
  t.match(evictionHard, [{ graceMs: undefined, minimumReclaim: { percentage: 5 } }])
})

test('all problems are reported at once', async (t) => {
  const problems: string[] = []
  evictionThresholds(
    {
      evictionSoft: { 'memory.available': '20%', 'nodefs.available': 'much' },
      evictionSoftGracePeriod: { 'pid.available': 'soon', 'disk.available': '1m' },
      evictionMinimumReclaim: { 'nodefs.available': '-1' },
      pressureStallWarning: { 'memory.full': '0%', 'cpu.some': '10%' },
    },
    problems,
  )
  t.same(
    problems.map((problem) => problem.split(':')[0]),
    [
      'evictionSoft[nodefs.available]',
      'evictionSoftGracePeriod[pid.available]',
      'evictionSoftGracePeriod[disk.available]',
      'evictionMinimumReclaim[nodefs.available]',
      'pressureStallWarning[memory.full]',
      'pressureStallWarning[cpu.some]',
      'evictionSoft[memory.available]',
    ],
  )
})

test('a soft threshold may have no grace, and one without its grace period is named', async (t) => {
  const evictionSoft = { 'memory.available': '20%', 'pid.available': '10%' }
  const parse = (evictionSoftGracePeriod: { readonly [signal: string]: string }) => {
    const problems: string[] = []
    const parsed = evictionThresholds({ evictionSoft, evictionSoftGracePeriod }, problems)
    return { graces: parsed.evictionSoft.map(({ graceMs }) => graceMs), problems }
  }
  t.same(parse({ 'memory.available': '0s', 'pid.available': '1m' }), { graces: [0, 60_000], problems: [] })
  t.same(parse({ 'memory.available': '-1s', 'pid.available': '1m' }).problems, [
    'evictionSoftGracePeriod[memory.available]: "-1s" must be a duration (like 90s or 5m)',
  ])
  t.equal(parse({ 'memory.available': '-1s', 'pid.available': 'soon' }).problems.length, 2, 'each is named once')
  t.same(parse({ 'memory.available': '-1s' }).problems, [
    'evictionSoftGracePeriod[memory.available]: "-1s" must be a duration (like 90s or 5m)',
    'evictionSoft[pid.available]: needs its grace period in evictionSoftGracePeriod',
  ])
})

test('a minimum reclaim belongs to the thresholds of its signal', async (t) => {
  const { evictionHard } = evictionThresholds(
    {
      evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' },
      evictionMinimumReclaim: { 'nodefs.available': '1Gi' },
    },
    [],
  )
  t.same(
    evictionHard.map((threshold) => 'minimumReclaim' in threshold),
    [false, true],
  )
})

test('a stall is warned about from a percentage above 0 and up to 100', async (t) => {
  const parse = (pressureStallWarning: { readonly [signal: string]: string }) => {
    const problems: string[] = []
    return { limits: evictionThresholds({ pressureStallWarning }, problems).pressureStallWarning, problems }
  }
  t.same(parse({ 'memory.full': '100%', 'io.full': '12.75%' }), {
    limits: [
      ['memory.full', 100],
      ['io.full', 12.75],
    ],
    problems: [],
  })
  for (const value of ['0%', '100.1%', '5', '5%%', 'x5%', '1.%', '.5%', '-5%', '1.x%']) {
    const because = 'must be a percentage above 0% and up to 100%'
    t.same(parse({ 'io.full': value }).problems, [`pressureStallWarning[io.full]: ${JSON.stringify(value)} ${because}`])
  }
  t.match(parse({ 'cpu.some': '10%' }).problems, [
    /^pressureStallWarning\[cpu\.some\]: "10%" is not for a known stall; known are (?!.*cpu)\w+\.\w+, /,
  ])
  t.same(parse({}), { limits: [], problems: [] })
})
