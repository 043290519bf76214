import { mkdir, readdir, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { aContainer } from '../../testing/builders.ts'
import { logLinkFolders } from './log-link-folders.ts'

const id = 'a'.repeat(64)
const podFolder = 'pods/default_web_uid-of-web'
const byName = `containers/web_default_main-${id}.log`

async function machine(t: Test, ...warnings: readonly string[]) {
  const root = testFolder(t)
  await mkdir(join(root, 'var/log'), { recursive: true })
  const logPath = join(root, `${id}-json.log`)
  await writeFile(logPath, '{"log":"hello"}\n')
  const under = (path: string) => join(root, 'var/log', path)
  const open = () => logLinkFolders(root, quietLog(t, ...warnings))
  return { root, logPath, under, open, container: aContainer({ id, logPath }) }
}

async function listed(path: string): Promise<readonly string[]> {
  return (await readdir(path, { recursive: true })).sort()
}

test('links are made when a container starts, and go with it and with the folders of its pod', async (t) => {
  const { logPath, under, open, container } = await machine(t)
  const links = open()
  await links.observe('uid-of-web', [container])
  t.equal(await readlink(under(`${podFolder}/main/0.log`)), logPath)
  t.equal(await readlink(under(byName)), `/var/log/${podFolder}/main/0.log`)
  for (const folder of ['pods', podFolder, `${podFolder}/main`, 'containers']) {
    t.equal((await stat(under(folder))).mode & 0o777, 0o755, folder)
  }
  const next = aContainer({ id: 'b'.repeat(64), logPath, identity: { attempt: 1 } })
  await links.observe('uid-of-web', [container, next])
  t.same(await listed(under(`${podFolder}/main`)), ['0.log', '1.log'])
  await links.observe('uid-of-web', [next])
  t.same(await listed(under(`${podFolder}/main`)), ['1.log'])
  await links.observe('uid-of-web', [])
  t.same(await listed(under('')), ['containers', 'pods'])
})

test('the next agent takes over the links, and removes those whose container is gone', async (t) => {
  const { logPath, under, open, container } = await machine(t)
  await open().observe('uid-of-web', [container])
  await mkdir(under('pods/other/main'), { recursive: true })
  await symlink('/absent', under('pods/other/main/foreign'))
  await writeFile(under('containers/file.log'), '')
  const links = open()
  await links.clean()
  await links.observe('uid-of-web', [container])
  t.equal(await readlink(under(`${podFolder}/main/0.log`)), logPath, 'its log is there')
  await rm(logPath)
  await links.clean()
  t.same(
    await listed(under('')),
    ['containers', 'containers/file.log', 'pods', 'pods/other', 'pods/other/main', 'pods/other/main/foreign'],
    'what others made stays',
  )
})

test('no link is followed, and no file replaced, that a pod made in the place of a folder or link', async (t) => {
  const { root, under, open, container } = await machine(t, 'Link to a log not made')
  const elsewhere = join(root, 'elsewhere')
  await mkdir(elsewhere)
  await symlink(elsewhere, under('pods'))
  await mkdir(under('containers'))
  await writeFile(under(byName), 'mine')
  const links = open()
  await links.observe('uid-of-web', [container])
  await links.observe('uid-of-web', [container])
  await links.clean()
  await links.observe('uid-of-web', [])
  t.same(await listed(elsewhere), [])
  t.same(await listed(under('containers')), [byName.slice('containers/'.length)])
})

test('a link that leads to the log of another container is replaced', async (t) => {
  const { logPath, under, open, container } = await machine(t)
  await mkdir(under(`${podFolder}/main`), { recursive: true })
  await symlink('/old', under(`${podFolder}/main/0.log`))
  await open().observe('uid-of-web', [container])
  t.equal(await readlink(under(`${podFolder}/main/0.log`)), logPath)
})
