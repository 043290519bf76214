/** A backup program with the folder of the kubelet in its pod, as the node agent of Velero has it. */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, nodeOnDocker } from './support/pods.ts'
import { testVolumes, withKubelet } from './support/volumes.ts'

const lasting = 'trap "exit 0" TERM; while :; do sleep 0.1; done'

test('a backup program sees what pods write to their claims', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const volumes = await testVolumes(t)
  const { directory, store } = await withKubelet(volumes, quietLog(t))
  const node = nodeOnDocker(t, dockerd, { volumes: store })
  const disk = join(volumes.folder, 'disk')
  await mkdir(disk)
  const pods = join(directory, 'pods')
  const backup = aPod({
    ...{ name: 'backup', uid: 'uid-backup' },
    containers: [
      container('main', lasting, {
        volumeMounts: [{ name: 'pods', mountPath: '/host_pods', mountPropagation: 'HostToContainer' }],
      }),
    ],
    spec: { volumes: [{ name: 'pods', hostPath: { path: pods } }], terminationGracePeriodSeconds: 2 },
  })
  const app = aPod({
    ...{ name: 'app', uid: 'uid-app' },
    containers: [
      container('main', `echo written >/data/file; ${lasting}`, {
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      }),
    ],
    spec: {
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      terminationGracePeriodSeconds: 2,
    },
  })
  const volume = { name: 'pv-1', uid: 'pv-uid', source: 'local' as const, path: disk }
  const claims = [{ namespace: 'default', name: 'data', uid: 'claim-uid', accessModes: ['ReadWriteOnce'], volume }]
  node.publishDesired({ pods: [backup], claims })
  await node.until('backup', ({ phase }) => phase === 'Running')
  node.publishDesired({ pods: [backup, app], claims })
  await node.until('app', ({ phase }) => phase === 'Running')
  // The path that Velero looks for.
  const found = '/host_pods/uid-app/volumes/*/pv-1'
  await node.within('backup', 'main', `until [ "$(cat ${found}/file)" = written ]; do sleep 0.1; done`)
  await node.within('backup', 'main', `echo back >$(echo ${found})/restored`)
  await node.within('app', 'main', '[ "$(cat /data/restored)" = back ]')

  node.publishDesired({ pods: [backup], claims })
  await eventually(async () => !(await readdir(pods)).includes('uid-app'))
  await node.within('backup', 'main', '[ ! -e /host_pods/uid-app ]')
  t.same((await readdir(disk)).sort(), ['file', 'restored'], 'the data stays')
  t.equal(await readFile(join(disk, 'restored'), 'utf8'), 'back\n')
  node.publishDesired({ pods: [] })
  await eventually(async () => (await readdir(pods)).length === 0)
})
