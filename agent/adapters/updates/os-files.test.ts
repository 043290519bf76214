import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { osFiles, osFolder } from './os-files.ts'

function machine(t: Test, files: { readonly [path: string]: string } = {}) {
  const root = t.testdir()
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  for (const [path, content] of Object.entries(files)) write(path, content)
  return { root, write, files: osFiles(root), at: (name: string) => join(root, osFolder, name) }
}

test('a machine without any of the files has nothing pending', async (t) => {
  const { files } = machine(t)
  t.same(await files.facts(), {
    ...{ pending: undefined, result: undefined, isRebootRequested: false },
    ...{ rebootPackages: [''], runningKernel: '', installedKernels: [] },
  })
  t.equal(await files.wanted(), undefined)
})

test('what the units and the system write is read', async (t) => {
  const { files } = machine(t, {
    [`${osFolder}/pending.json`]: '{"listsFrom":1700000000,"security":2,"others":5,"packages":["openssl","libssl3"]}\n',
    [`${osFolder}/result.json`]: '{"id":"a1","outcome":"failed","reason":"apt-get update failed"}\n',
    'run/reboot-required': '*** System restart required ***\n',
    'run/reboot-required.pkgs': 'dbus\nlinux-image-6.1.0-29-amd64\n',
    'proc/sys/kernel/osrelease': '6.1.0-28-amd64\n',
    'boot/vmlinuz-6.1.0-28-amd64': '',
    'boot/vmlinuz-6.1.0-29-amd64': '',
    'boot/initrd.img-6.1.0-29-amd64': '',
  })
  t.same(await files.facts(), {
    pending: {
      ...{ listsFromMs: 1_700_000_000_000, security: 2, others: 5 },
      packages: ['openssl', 'libssl3'],
    },
    result: { id: 'a1', outcome: 'failed', reason: 'apt-get update failed' },
    isRebootRequested: true,
    rebootPackages: ['dbus', 'linux-image-6.1.0-29-amd64', ''],
    runningKernel: '6.1.0-28-amd64',
    installedKernels: ['6.1.0-28-amd64', '6.1.0-29-amd64'],
  })
})

test('files that are damaged, of another form or too large count as missing', async (t) => {
  for (const content of ['', '{', '[]', '{"security":"2"}', `{"packages":["${'x'.repeat(100_000)}"]}`]) {
    const { files } = machine(t, { [`${osFolder}/pending.json`]: content, [`${osFolder}/result.json`]: content })
    t.match(await files.facts(), { pending: undefined, result: undefined }, content.slice(0, 20))
  }
})

test('what the controller wants is on disk until it wants it no longer', async (t) => {
  const { files, at } = machine(t)
  await files.saveWanted(undefined)
  await files.saveWanted({ id: 'a1' })
  t.same(await files.wanted(), { id: 'a1' })
  await files.saveWanted(undefined)
  t.notOk(existsSync(at('wanted.json')))
  await files.saveRefresh(true)
  t.ok(existsSync(at('refresh')))
  await files.saveRefresh(false)
  t.notOk(existsSync(at('refresh')))
})
