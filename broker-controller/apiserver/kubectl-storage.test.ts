import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

const manifest = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: slow
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: example.com/disk
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: slow
  local: {path: /mnt/disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

test('kubectl and volumes', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl } = api
  const ok = async (args: readonly string[], input = '') => {
    const ran = await kubectl(args, { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran.stdout
  }

  await t.test('apply, get and describe them', async (t) => {
    await ok(['apply', '-f', '-'], manifest)
    t.match(
      await ok(['get', 'pv']),
      /NAME +CAPACITY +ACCESS MODES +RECLAIM POLICY +STATUS +CLAIM +STORAGECLASS .*\ndisk +5Gi +RWO +Retain +Pending +slow +<unset> +\d+s/,
    )
    t.match(
      await ok(['get', 'pvc']),
      /NAME +STATUS +VOLUME +CAPACITY +ACCESS MODES +STORAGECLASS .*\ndata +Pending +slow +<unset> +\d+s/,
    )
    t.match(await ok(['get', 'sc']), /slow \(default\) +example.com\/disk +Delete +Immediate +false +\d+s/)
    t.match(await ok(['describe', 'pv', 'disk']), /LocalVolume/)
    t.match(await ok(['describe', 'pvc', 'data']), /Status: +Pending/)
    t.match(await ok(['explain', 'pvc.spec.dataSource']), /KIND: +PersistentVolumeClaim/)
  })

  await t.test('a pod with a volume that no node mounts is refused with the reason', async (t) => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: {
        containers: [{ name: 'web', image: 'busybox:1.36' }],
        volumes: [{ name: 'data', iscsi: { targetPortal: 'nas' } }],
      },
    }
    const ran = await kubectl(['create', '-f', '-'], { input: JSON.stringify(pod) })
    t.equal(ran.code, 1)
    t.match(ran.stderr, /spec.volumes\[0\].iscsi: Forbidden: is not supported by this version of Bramble/)
  })

  await t.test('apply --prune finds every kind that it asks for by default', async (t) => {
    const labelled = (name: string) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { app: 'web' } } })
    await ok(['apply', '-f', '-'], `${labelled('old')}\n${labelled('kept')}`)
    t.match(await ok(['apply', '--prune', '-l', 'app=web', '-f', '-'], labelled('kept')), 'configmap/old pruned')
  })

  await t.test('delete them, once nothing protects them', async (t) => {
    await ok(['delete', 'pvc,pv,sc', '--all', '--wait=false'])
    // The controllers that remove the finalizers do not run here.
    const protectedObjects = ['persistentvolumeclaim/data', 'persistentvolume/disk']
    t.same((await ok(['get', 'pvc,pv,sc', '-o', 'name'])).trim().split('\n'), protectedObjects)
    for (const name of protectedObjects)
      await ok(['patch', name, '--type=merge', '--patch={"metadata":{"finalizers":null}}'])
    t.equal(await ok(['get', 'pvc,pv,sc', '-o', 'name']), '')
  })
})
