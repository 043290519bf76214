/** The script that counts and installs updates of a machine, run by sh with doubles of apt-get and dpkg. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { fakeApt } from './testing/fake-apt.ts'

const script = fileURLToPath(new URL('../../scripts/packages/bramble-agent/os-updates', import.meta.url))

const ofSecurity = [
  'Inst libssl3 [3.0.15-1~deb12u1] (3.0.17-1~deb12u3 Debian-Security:12/stable-security [arm64])',
  'Inst openssl [3.0.15-1~deb12u1] (3.0.17-1~deb12u3 Debian:12.9/stable, Debian-Security:12/stable-security [arm64])',
  'Inst linux-image-arm64 [6.1.128-1] (6.1.129-1 Ubuntu:24.04/noble-security [arm64]) []',
]
const others = [
  'NOTE: This is only a simulation!',
  'Inst tzdata [2024a-0] (2025b-0 Debian:12.9/stable-updates [all])',
  'Inst security-tools [1.0] (1.1+security1 Debian:12.9/stable [all])',
  'Inst linux-image-6.1.0-32-arm64 (6.1.129-1 Debian-Security:12/stable-security [arm64])',
  'Conf libssl3 (3.0.17-1~deb12u3 Debian-Security:12/stable-security [arm64])',
]

function machine(t: Test) {
  const root = testFolder(t)
  const [folder, lists] = [join(root, 'os'), join(root, 'lists')]
  const apt = fakeApt(join(root, 'doubles'))
  mkdirSync(join(lists, 'partial'), { recursive: true })
  utimesSync(join(lists, 'partial'), 1_700_000_000, 1_700_000_000)
  mkdirSync(folder)
  return {
    apt,
    osUpdates(mode: string) {
      const env = { PATH: `${apt.path}:${process.env['PATH']}` }
      const { status, stdout, stderr } = spawnSync('sh', [script, mode, folder, lists], { env, encoding: 'utf8' })
      return { status, stdout, stderr }
    },
    put: (name: string, content = '') => writeFileSync(join(folder, name), content),
    age(name: string, seconds: number) {
      const at = Date.now() / 1000 - seconds
      utimesSync(join(folder, name), at, at)
    },
    has: (name: string) => existsSync(join(folder, name)),
    read: (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8')),
    installed: () => apt.log().filter((line) => / install /.test(line)),
    updates: () => apt.log().filter((line) => / update$/.test(line)).length,
  }
}

test('shellcheck finds nothing', async (t) => {
  t.equal(spawnSync('shellcheck', [script], { encoding: 'utf8' }).stdout, '')
})

test('installed packages with a newer version in a security archive are counted apart from the others', async (t) => {
  const { apt, osUpdates, read, updates } = machine(t)
  apt.pending(...ofSecurity, ...others)
  t.match(osUpdates('count'), { status: 0 })
  t.same(read('pending.json'), {
    ...{ listsFrom: 1_700_000_000, security: 3, others: 2 },
    packages: ['libssl3', 'openssl', 'linux-image-arm64'],
  })
  t.equal(updates(), 0, 'nothing is downloaded')
  apt.pending()
  t.match(osUpdates('count'), { status: 0 })
  t.match(read('pending.json'), { security: 0, others: 0, packages: [] })
})

test('package lists are downloaded where the agent allows it, once a day, also with a clock that was ahead', async (t) => {
  const { osUpdates, put, age, updates } = machine(t)
  put('refresh')
  osUpdates('count')
  osUpdates('count')
  t.equal(updates(), 1)
  age('refreshed', 100_000)
  osUpdates('count')
  t.equal(updates(), 2)
  age('refreshed', -1e8)
  osUpdates('count')
  t.equal(updates(), 3)
})

test('lists that cannot be downloaded leave those from before', async (t) => {
  const { apt, osUpdates, put, has, read } = machine(t)
  put('refresh')
  apt.pending(...ofSecurity)
  apt.fail('update', 'Failed to fetch http://deb.example/dists/stable/InRelease')
  t.match(osUpdates('count'), { status: 0, stderr: /could not be downloaded/ })
  t.match(read('pending.json'), { security: 3 })
  t.notOk(has('refreshed'), 'the next count tries again')
})

test('a simulation that fails leaves what was counted before', async (t) => {
  const { apt, osUpdates, read } = machine(t)
  apt.pending(...ofSecurity)
  osUpdates('count')
  apt.fail('upgrade', 'dpkg was interrupted')
  t.not(osUpdates('count').status, 0)
  t.match(read('pending.json'), { security: 3 })
})

test('an upgrade whose last count fails leaves what was counted before', async (t) => {
  const { apt, osUpdates, put, read } = machine(t)
  apt.pending(...ofSecurity)
  osUpdates('count')
  put('wanted.json', '{"id":"a1"}')
  apt.fail('upgrade', 'dpkg was interrupted', 1, 1)
  t.match(osUpdates('upgrade'), { status: 0 })
  t.match(read('result.json'), { outcome: 'done' })
  t.match(read('pending.json'), { security: 3 })
})

test('an upgrade that is wanted is installed once, and what is pending is counted again', async (t) => {
  const { apt, osUpdates, put, read, installed } = machine(t)
  apt.pending(...ofSecurity, ...others)
  put('wanted.json', '{"id":"2026-01-02T03:04:05Z"}')
  t.match(osUpdates('upgrade'), { status: 0 })
  t.same(read('result.json'), { id: '2026-01-02T03:04:05Z', outcome: 'done' })
  t.match(read('pending.json'), { security: 0 })
  t.match(installed(), [/--only-upgrade --no-remove .*--force-confold install libssl3 openssl linux-image-arm64$/])
  t.match(apt.log()[0], /^dpkg .*--configure -a$/, 'what a power cut has left is configured first')
  apt.pending(...ofSecurity)
  t.match(osUpdates('upgrade'), { status: 0 })
  t.equal(installed().length, 1, 'it is not done twice')
  put('wanted.json', '{"id":"b2"}')
  osUpdates('upgrade')
  t.equal(installed().length, 2)
})

test('an upgrade that a power cut has ended is done again', async (t) => {
  const { apt, osUpdates, put, read, installed } = machine(t)
  apt.pending(...ofSecurity)
  put('wanted.json', '{"id":"a1"}')
  put('result.json', '{"id":"a1","outcome":"running"}\n')
  osUpdates('upgrade')
  t.equal(installed().length, 1)
  t.match(read('result.json'), { outcome: 'done' })
})

test('nothing is installed where nothing is wanted, nor for an id that is not a word', async (t) => {
  const { apt, osUpdates, put, has } = machine(t)
  apt.pending(...ofSecurity)
  t.match(osUpdates('upgrade'), { status: 0 })
  for (const written of ['', '{"id":"a b"}', '{"id":"$(reboot)"}', '{"id":"a\\"b"}', 'a1']) {
    put('wanted.json', written)
    t.match(osUpdates('upgrade'), { status: 0 }, written)
  }
  t.notOk(has('result.json'))
  t.same(apt.log(), [])
})

test('locks and a missing network are waited for, and then the last error is reported', async (t) => {
  const { apt, osUpdates, put, read, installed } = machine(t)
  apt.pending(...ofSecurity)
  put('wanted.json', '{"id":"a1"}')
  apt.fail('install', 'Could not get lock /var/lib/dpkg/lock-frontend.', 2)
  t.match(osUpdates('upgrade'), { status: 0 })
  t.equal(installed().length, 3)
  t.equal(apt.log().filter((line) => line === 'sleep 60').length, 2)
  put('wanted.json', '{"id":"a2"}')
  apt.fail('update', 'Failed to fetch "http://deb.example/x"\\ $(id)', 99)
  t.match(osUpdates('upgrade'), { status: 1 })
  t.same(read('result.json'), {
    ...{ id: 'a2', outcome: 'failed' },
    reason: 'the package lists could not be downloaded: Failed to fetch http://deb.example/x id ',
  })
})

test('an upgrade that a package refuses is not tried again', async (t) => {
  const { apt, osUpdates, put, read, installed } = machine(t)
  apt.pending(...ofSecurity)
  put('wanted.json', '{"id":"a1"}')
  apt.fail('install', 'Sub-process /usr/bin/dpkg returned an error code (1)', 99)
  t.match(osUpdates('upgrade'), { status: 1 })
  t.equal(installed().length, 1)
  t.match(read('result.json'), { outcome: 'failed', reason: /could not be installed: Sub-process \/usr\/bin\/dpkg/ })
})

test('a machine without apt, and a word that it does not have', async (t) => {
  t.match(machine(t).osUpdates('remove'), { status: 64, stderr: /usage: os-updates/ })
  const { status, stderr } = spawnSync('/bin/sh', [script, 'count'], { env: { PATH: '' }, encoding: 'utf8' })
  t.match({ status, stderr }, { status: 0, stderr: /no apt-get/ })
})
