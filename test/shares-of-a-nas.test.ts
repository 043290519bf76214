/** Volumes on a real NAS: the kernel's NFS and SMB clients and servers, and a cable that is pulled. */
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { mountPoints } from '../agent/adapters/disk/mounts.ts'
import type { MountedShare } from '../agent/pods/volumes/share-mount.ts'
import type { WantedVolume } from '../agent/pods/volumes/volume-store.ts'
import { smbUser, startNas, whyNoNas } from './support/nas.ts'
import { patience } from './support/patience.ts'
import { testVolumes } from './support/volumes.ts'
import { eventually } from './support/wait.ts'

const noAnswer = /does not answer/

function volumeOn(share: MountedShare, uid: string): WantedVolume {
  const head = { name: 'data', kind: 'claim', uid, volume: uid, source: 'share', path: '', type: '' } as const
  return { ...head, claim: 'default/data', isForOnePod: false, share }
}

test('volumes on a NAS', { skip: whyNoNas() }, async (t) => {
  const { store, folder } = await testVolumes(t)
  await chmod(folder, 0o711) // The server looks up its exports without the rights of root.
  const nas = await startNas(t, join(folder, 'nas'))
  const nfs: MountedShare = { kind: 'nfs', server: nas.address, path: nas.folder }
  const smb: MountedShare = { kind: 'smb', server: nas.address, path: '/files', user: smbUser }
  const classFolder: MountedShare = { ...nfs, path: join(nas.folder, 'default/db'), root: nas.folder }
  const volumes = { nfs: volumeOn(nfs, 'pv-nfs'), smb: volumeOn(smb, 'pv-smb'), made: volumeOn(classFolder, 'pv-made') }
  /** A first mount may take longer than a worker waits for it. */
  const placed = (pod: string, volume: WantedVolume) =>
    eventually(`the volume of ${pod}`, () => store.place(pod, volume), { everyMs: 1_000 })
  const mountsOf = async (type: RegExp) => (await mountPoints()).filter((one) => type.test(one.type))

  await t.test('shares of both kinds are mounted, and have the files of the server', async (t) => {
    await writeFile(join(await placed('a', volumes.nfs), 'by-nfs'), 'one')
    await writeFile(join(await placed('b', volumes.smb), 'by-smb'), 'two')
    t.equal(await readFile(join(nas.folder, 'by-nfs'), 'utf8'), 'one')
    t.equal(await readFile(join(nas.folder, 'by-smb'), 'utf8'), 'two')
    const made = await placed('c', volumes.made)
    await writeFile(join(made, 'file'), '')
    t.ok((await stat(join(nas.folder, 'default/db/file'))).isFile())
    t.equal((await mountsOf(/^(nfs4|cifs)$/)).length, 3, 'nothing else is left mounted')
  })

  await t.test('a wrong password is reported without it', async (t) => {
    const user = { ...smbUser, password: 'not this one' }
    const message = await eventually('the refusal', async () => {
      const found = await store
        .place('d', volumeOn({ ...smb, user }, 'pv-wrong'))
        .catch((error: Error) => error.message)
      return /takes longer/.test(found) ? undefined : found
    })
    t.match(message, /^mount failed: exit status \d+: mount error\(13\): Permission denied/)
    t.notMatch(message, /not this one/)
  })

  await t.test('a folder that the server has replaced is mounted again', async (t) => {
    const made = await placed('c', volumes.made)
    await rename(join(nas.folder, 'default/db'), join(nas.folder, 'default/old'))
    await rm(join(nas.folder, 'default/old'), { recursive: true })
    await mkdir(join(nas.folder, 'default/db'))
    await writeFile(join(nas.folder, 'default/db/new'), '')
    await eventually('the new folder', async () => {
      await store.place('c', volumes.made)
      return (await stat(join(made, 'new'))).isFile()
    })
    t.pass()
  })

  await t.test('while the NAS is off, its volumes are refused, and nothing else waits', async (t) => {
    await nas.cable('down')
    const refused = (pod: string, volume: WantedVolume) =>
      eventually(`${pod} is refused`, async () =>
        noAnswer.test(await store.place(pod, volume).then(String, (error: Error) => error.message)),
      )
    await Promise.all([refused('a', volumes.nfs), refused('b', volumes.smb), refused('c', volumes.made)])
    const silence = await store.silence((await store.placedAt('b', 'data')) ?? '')
    t.match(silence, { why: noAnswer }, 'SMB fails by itself after a while')
    await refused('e', volumeOn({ ...nfs, path: join(nas.folder, 'default') }, 'pv-new'))
    const start = performance.now()
    await Promise.all(Object.values(volumes).map((one) => store.place('x', one).catch(() => undefined)))
    await store.place('local', { name: 'scratch', kind: 'emptyDir', memory: false })
    t.ok(performance.now() - start < 2_000 * patience, 'all of them, and a volume of another pod')
    await store.remove('c')
    await eventually('a pod with an unreachable volume can go', async () => (await mountsOf(/^nfs4$/)).length === 1)
  })

  await t.test('all goes on when the NAS is back', async (t) => {
    await nas.cable('up')
    t.equal(await readFile(join(await placed('a', volumes.nfs), 'by-nfs'), 'utf8'), 'one')
    t.equal(await readFile(join(await placed('b', volumes.smb), 'by-smb'), 'utf8'), 'two')
    for (const pod of ['a', 'b', 'c', 'd', 'e', 'x', 'local']) await store.remove(pod)
    await eventually('no share is mounted', async () => (await mountsOf(/^(nfs4|cifs)$/)).length === 0)
  })
})
