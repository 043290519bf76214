/** What a person does to single claims, their pods and their data. */
import type { FleetTrash } from '../../api/storage/fleet-volumes.ts'
import type { PersistentVolumeClaim } from '../../api/storage/persistent-volume-claim.ts'
import { undeletion } from '../../broker-controller/commands/volumes/restored-volume.ts'
import type { PersonNeeds, Requests } from './requests.ts'

const core = '/api/v1/namespaces/default'
const claimPath = (name: string) => `${core}/persistentvolumeclaims/${name}`

/** `removeAllAgain`: takes workloads away again that the person has taken away, and a backup has brought back. */
export function claimActs(
  { api, answered }: Requests,
  { story, place }: PersonNeeds,
  removeAllAgain: () => Promise<void>,
) {
  const removedClaims = new Set<string>()
  const presentClaim = async (of: string): Promise<PersistentVolumeClaim | undefined> => {
    const { status, body } = await answered(`read claim ${of}`, () => api.get(claimPath(of)))
    return status === 200 ? (body as PersistentVolumeClaim) : undefined
  }
  const removePods = async (app: string) => {
    const path = `${core}/pods?labelSelector=app%3D${app}`
    await answered(`delete pods of ${app}`, () => api.delete(path, undefined, {}))
  }
  /** This one, and no later one of its name. As kubectl it waits until the claim is gone; after a restore a pod may have it that no workload has. */
  const removeClaim = async (of: string, uid: string) => {
    removedClaims.add(uid)
    story.record({ kind: 'asked', claimUID: uid })
    const options = { propagationPolicy: 'Background', preconditions: { uid } }
    const request = () => answered(`delete claim ${of} (${uid})`, () => api.delete(claimPath(of), undefined, options))
    await request()
    for (let looks = 1; ; looks++) {
      const { metadata } = (await presentClaim(of)) ?? {}
      if (metadata?.uid !== uid) return
      if (metadata.deletionTimestamp === undefined) {
        // A backup from before has brought it back meanwhile, and its workload.
        await removeAllAgain()
        await request()
      }
      await place.life.clock.sleep(5_000)
      if (looks % 12 === 0) await removePods(of)
    }
  }
  const removeClaimNow = async (of: string) => {
    const uid = (await presentClaim(of))?.metadata.uid
    if (uid !== undefined) await removeClaim(of, uid)
  }
  /** A claim that was deleted came back with a backup; a pod that uses it goes, and gets another one. */
  const removeAgain = async (of: string) => {
    const uid = (await presentClaim(of))?.metadata.uid
    if (uid === undefined || !removedClaims.has(uid)) return
    const [, pod] = /^data-(.*)$/.exec(of) ?? []
    const removing = removeClaim(of, uid)
    if (pod !== undefined) await answered(`delete pod ${pod}`, () => api.delete(`${core}/pods/${pod}`))
    await removing
  }
  /** As `bramble-controller volumes undelete`. */
  const undelete = async ({ uid, claim: of = '', ...entry }: FleetTrash) => {
    const own = of.slice(of.indexOf('/') + 1)
    const present = await presentClaim(own)
    const classOf = () => ({ metadata: { name: 'local-path' }, provisioner: '', reclaimPolicy: 'Delete' }) as never
    const forClaim = { namespace: 'default', name: own, present, size: undefined, classOf }
    const plan = undeletion({ uid, claim: of, ...entry }, forClaim)
    if ('problem' in plan) return story.note(place.machine, `not undeleted: ${plan.problem}`)
    const made = await answered(`undelete ${uid} for ${of}`, () => api.post('/api/v1/persistentvolumes', plan.volume))
    // As the command: no claim is made for a volume that is there already, and may be on its way to the trash.
    if (made.status === 201 && plan.claim !== undefined)
      await answered(`make claim ${own}`, () => api.post(`${core}/persistentvolumeclaims`, plan.claim))
  }
  const deletePod = async (pod: string, isForced: boolean) => {
    const path = `${core}/pods/${pod}`
    const { status, body } = await answered(`read ${path}`, () => api.get(path))
    const uid = (body as PersistentVolumeClaim).metadata?.uid
    if (status !== 200 || uid === undefined) return
    if (isForced) story.record({ kind: 'forced', podUID: uid })
    const options = { preconditions: { uid }, ...(isForced && { gracePeriodSeconds: 0 }) }
    const what = `delete ${path} ${isForced ? 'with force' : ''}`
    await answered(what, () => api.delete(path, undefined, options))
  }

  return { removeClaimNow, removeAgain, undelete, deletePod }
}
