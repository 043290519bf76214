/** A client that lists the objects of a kind and watches them, over and over: what it sees is judged. */
import { administrator } from '../../api/identity.ts'
import { type ApiServers, simulatedApi, stream } from '../programs/api-transport.ts'
import type { Story } from '../story/story.ts'
import type { ProgramPlace } from '../world/wire.ts'

type Meta = {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
}
type Seen = { readonly type: string; readonly object: { readonly metadata?: Meta } }
type SeenList = { readonly metadata?: Meta; readonly items: readonly { readonly metadata: Meta }[] }

export type WatchedPath = { readonly resource: string; readonly path: string }

export const podsOfFleet: WatchedPath = { resource: 'pods', path: '/api/v1/pods' }

/** Never resolves. */
export async function watchKind(
  { resource, path }: WatchedPath,
  place: ProgramPlace,
  servers: ApiServers,
  story: Story,
): Promise<void> {
  const api = simulatedApi(place, servers, administrator)
  const { clock } = place.life
  let from: string | undefined

  const list = async () => {
    const { status, body } = await api.get(path)
    if (status !== 200) throw new Error(`status ${status}`)
    const { metadata, items } = body as SeenList
    const version = metadata?.resourceVersion ?? ''
    const uids = items.map((item) => item.metadata.uid ?? '')
    story.record({ kind: 'listed', resource, version: Number(version), uids })
    return version
  }
  const take = (piece: string) => {
    for (const line of piece.split('\n').filter((one) => one !== '')) {
      const { type, object } = JSON.parse(line) as Seen
      if (type === 'ERROR') {
        from = undefined
        return
      }
      const { name = '', namespace = '', uid = '', resourceVersion = '' } = object.metadata ?? {}
      from = resourceVersion
      story.record({ kind: 'watched', resource, namespace, name, uid, type, version: Number(resourceVersion) })
    }
  }
  for (;;) {
    try {
      from ??= await list()
      const status = await stream(
        place,
        servers,
        { path: `${path}?watch=true&resourceVersion=${from}`, identity: administrator },
        take,
      )
      if (status === 410) from = undefined
    } catch {
      // The controller is away.
    }
    await clock.sleep(1_000)
  }
}
