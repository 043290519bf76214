/** The links for log collectors, to the logs that a real engine writes. */
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { logLinkFolders } from '../agent/adapters/disk/log-link-folders.ts'
import { aPod } from '../api/testing/builders.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, listening, nodeOnDocker } from './support/pods.ts'

test('links lead a collector to the logs of containers while their pod is there', {
  skip: whyNoDockerd(),
}, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const root = await mkdtemp(join(tmpdir(), 'bramble-logs-'))
  t.teardown(() => rm(root, { recursive: true }))
  await mkdir(join(root, 'var/log'), { recursive: true })
  const node = nodeOnDocker(t, dockerd, { logLinks: logLinkFolders(root, quietLog(t)) })
  const script = `echo started; ${listening[2]}`
  const once = aPod({
    name: 'once',
    uid: 'uid-once',
    restartPolicy: 'Never',
    containers: [container('main', 'echo done')],
  })
  node.want(aPod({ name: 'web', uid: 'uid-web', containers: [container('main', script)] }), once)
  await node.until('web', isReady)
  await node.until('once', ({ phase }) => phase === 'Succeeded')

  const containers = join(root, 'var/log/containers')
  const textOf = async (pattern: RegExp) => {
    const name = (await readdir(containers)).find((one) => pattern.test(one)) ?? ''
    // On a machine its target is a path below `/`.
    const target = join(root, await readlink(join(containers, name)))
    return (await readFile(target, 'utf8')).split('\n').filter(Boolean)
  }
  const [line = '', ...more] = await textOf(/^web_default_main-[0-9a-f]{64}\.log$/)
  t.match(JSON.parse(line), { log: 'started\n', stream: 'stdout' })
  t.same(more, [])
  t.match(JSON.parse((await textOf(/^once_default_main-/))[0] ?? '{}'), { log: 'done\n' }, 'also after its end')
  const own = join(root, 'var/log/pods/default_web_uid-web/main')
  t.ok((await lstat(join(own, '0.log'))).isSymbolicLink())
  t.ok((await realpath(join(own, '0.log'))).startsWith(dockerd.rootDirectory))

  await dockerd.docker
    .getContainer(
      (await node.runtime.listContainers('uid-web')).find(({ identity }) => identity.containerName === 'main')?.id ??
        '',
    )
    .kill()
  await eventually(
    async () => (await readdir(own)).includes('1.log'),
    () => 'no link to the log of the next instance',
  )

  node.want(once)
  await eventually(() => node.gone.includes('uid-web'))
  await eventually(async () => (await readdir(containers)).every((name) => name.startsWith('once_')))
  t.same(await readdir(join(root, 'var/log/pods')), ['default_once_uid-once'])
})
