import { test } from 'tap'
import {
  isSameLevelVersion,
  latestVersion,
  levelForm,
  levelVersionText,
  parseLevel,
  parseVersion,
  strictness,
  versionText,
} from './levels.ts'

test('levels and versions have the words of Kubernetes', async (t) => {
  t.same(['privileged', 'baseline', 'restricted'].map(parseLevel), ['privileged', 'baseline', 'restricted'])
  for (const wrong of ['', 'Baseline', 'constructor', 'baseline ']) t.equal(parseLevel(wrong), undefined, wrong)
  t.same(['latest', 'v1.0', 'v1.32', 'v1.100'].map(parseVersion), [latestVersion, 0, 32, 100])
  for (const wrong of [
    '',
    'v1',
    'v1.',
    'v1.01',
    'v2.0',
    '1.32',
    'v1.32.1',
    'v1.-1',
    'xv1.30',
    `v1.${'9'.repeat(40)}`,
  ]) {
    t.equal(parseVersion(wrong), undefined, wrong)
  }
})

test('a level and its version have one text, and levels can be compared', async (t) => {
  const restricted = { level: 'restricted', version: latestVersion } as const
  t.equal(levelVersionText(restricted), 'restricted:latest')
  t.equal(levelVersionText({ level: 'baseline', version: 0 }), 'baseline:v1.0')
  t.equal(versionText(32), 'v1.32')
  t.equal(levelForm, 'must be one of privileged, baseline, restricted')
  t.ok(strictness('restricted') > strictness('baseline') && strictness('baseline') > strictness('privileged'))
  t.ok(isSameLevelVersion(restricted, { ...restricted }))
  t.notOk(isSameLevelVersion(restricted, { level: 'restricted', version: 32 }))
  t.notOk(isSameLevelVersion(restricted, { level: 'baseline', version: latestVersion }))
})
