import { test } from 'tap'
import { verdicts } from '../testing/verdicts.ts'
import { filesystemFinding, halves, sensorFindings } from './health.ts'

test('what is wrong and what to do are told apart in every message of the health conditions', async (t) => {
  t.same(halves('the root filesystem (/dev/mmcblk0p2) fails: EIO: i/o error: save what you can'), {
    found: 'The root filesystem (/dev/mmcblk0p2) fails: EIO: i/o error',
    remedy: 'Save what you can',
  })
  t.same(halves('Too hot: cpu (limit 80 °C). Give the machine air'), {
    found: 'Too hot: cpu (limit 80 °C)',
    remedy: 'Give the machine air',
  })
  t.same(halves('Docker answers'), { found: 'Docker answers', remedy: undefined })
  const bad = sensorFindings({
    power: { underVoltage: { now: true, before: true }, throttling: { now: true, before: true, by: ['throttled'] } },
    temperature: {
      zones: [{ name: 'cpu', celsius: 99, trips: [{ kind: 'critical', celsius: 100 }] }],
      board: undefined,
    },
    flash: [{ name: 'mmcblk0', lifeTime: [11, 2], preEndOfLife: 3 }],
    radio: [{ name: 'wlan0', signalDbm: -90 }],
  })
  t.same(new Set(Object.values(verdicts(bad))), new Set(['problem']))
  for (const { check, found, remedy } of bad) {
    t.match(remedy, /^[A-Z][a-z]+ /, `${check}: ${remedy}`)
    t.notMatch(found, /: (use|give|move|replace)/i)
  }
})

test('what was wrong since the start is a warning, and what nothing tells of is not known', async (t) => {
  const seen = { now: false, before: true }
  const found = sensorFindings({
    power: { underVoltage: seen, throttling: { ...seen, by: [] } },
    temperature: { zones: [], board: undefined },
    flash: [],
    radio: [],
  })
  t.same(verdicts(found), {
    'supply-voltage': 'warning',
    throttling: 'warning',
    temperature: 'unknown',
    'storage-wear': 'unknown',
    wifi: 'unknown',
  })
})

test('filesystems', async (t) => {
  const root = { role: 'root', path: '/', device: '/dev/sda1', errors: 0, failure: undefined } as const
  t.match(filesystemFinding([{ ...root, isReadOnly: true, isMeantSo: false }]), { verdict: 'problem', remedy: /fsck/ })
  t.match(filesystemFinding([{ ...root, isReadOnly: true, isMeantSo: true }]), {
    verdict: 'ok',
    found: /configured so/,
  })
  t.equal(filesystemFinding([]).verdict, 'unknown')
})
