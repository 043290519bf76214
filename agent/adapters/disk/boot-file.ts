/** The file with the last boots and the pods that are held back: a few lines of words, so that one that is torn costs a line. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BootNote } from '../../health/boot-loop.ts'

/** `pod`: `namespace/name`; its UID where an earlier agent wrote none. */
export type HeldPod = { readonly uid: string; readonly pod: string }

export type BootFile = { readonly boots: readonly BootNote[]; readonly held: readonly HeldPod[] }

export function bootFilePath(dataDirectory: string): string {
  return join(dataDirectory, 'boot-id')
}

/** Without boots where there is no such file, or it cannot be read. */
export async function readBootFile(path: string): Promise<BootFile> {
  return parseBootFile(await readFile(path, 'utf8').catch(() => ''))
}

/** A line for each boot, the newest first: its id, and what is to be known of it. Words of later agents are passed over. */
export function parseBootFile(text: string): BootFile {
  const lines = text.split('\n').flatMap((line) => (/^[\w-]+( [\w=.:/-]+)*$/.test(line) ? [line.split(' ')] : []))
  const held = lines.flatMap(([first, ...words]) => (first === 'held' ? words.map(heldPod) : []))
  const boots = lines.flatMap(([bootID = '', ...words]): BootNote[] => {
    if (bootID === 'held') return []
    const wordOf = (name: string) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
    const [last, trial, ran] = [wordOf('last'), wordOf('trial'), wordOf('ran')]
    return [
      {
        bootID,
        ...(words.includes('lasted') && { lasted: true }),
        ...(words.includes('ended') && { ended: true }),
        ...(last && { last }),
        ...(trial && { trial }),
        ...(words.includes('began') && { began: true }),
        ...(words.includes('controlled') && { controlled: true }),
        ...(/^\d{1,3}$/.test(ran ?? '') && { ran: Number(ran) }),
      },
    ]
  })
  return { boots, held }
}

export function bootFileText({ boots, held }: BootFile): string {
  const lines = boots.map(({ bootID, lasted, ended, last, trial, began, controlled, ran }) =>
    [
      bootID,
      ...(lasted ? ['lasted'] : []),
      ...(ended ? ['ended'] : []),
      ...(last === undefined ? [] : [`last=${last}`]),
      ...(trial === undefined ? [] : [`trial=${trial}`]),
      ...(began ? ['began'] : []),
      ...(controlled ? ['controlled'] : []),
      ...(ran === undefined ? [] : [`ran=${ran}`]),
    ].join(' '),
  )
  const words = held.map(({ uid, pod }) => `${uid}=${pod}`)
  return `${[...lines, ...(words.length === 0 ? [] : [`held ${words.join(' ')}`])].join('\n')}\n`
}

function heldPod(word: string): HeldPod {
  const [uid = '', pod = uid] = word.split('=', 2)
  return { uid, pod }
}
