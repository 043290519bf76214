/** `devices` of the agent's configuration: the devices that pods can request. */

import { labelKeyProblem } from '../../../api/names.ts'
import { type Described, integer, list, object, optional, text } from '../../../api/schema.ts'

export const DeviceSettingsSchema = object({
  name: text,
  paths: optional(list(text)),
  groups: optional(list(list(text))),
  shared: optional(integer),
})

export type DevicePath = {
  /** `*` and `?` are allowed in its last part. */
  readonly pattern: string
  /** Its path in the container; undefined: the same. */
  readonly target: string | undefined
}

export type DeclaredDevices = {
  /** `bramble.dev/NAME` */
  readonly resource: string
  /** Each device that is found there is requested by itself. */
  readonly paths: readonly DevicePath[]
  /** All devices of a group are requested together. */
  readonly groups: readonly (readonly DevicePath[])[]
  /** How many containers may have a device or a group at a time. */
  readonly shared: number
}

/** More than a node has pods in practice: a limit against a typing error. */
const mostShared = 1000

/** Adds what is wrong to `problems`, each with its field. */
export function declaredDevices(
  written: readonly Described<typeof DeviceSettingsSchema>[],
  problems: string[],
): readonly DeclaredDevices[] {
  const names = written.map(({ name }) => name)
  return written.map(({ name, paths, groups, shared = 1 }, index) => {
    const where = `devices[${index}]`
    const resource = `bramble.dev/${name}`
    const because = name.includes('/')
      ? 'must not contain "/"; the prefix bramble.dev/ is added'
      : labelKeyProblem(resource)
    if (because !== undefined) problems.push(`${where}.name: ${JSON.stringify(name)} ${because}`)
    if (names.indexOf(name) < index) problems.push(`${where}.name: ${name} is set twice`)
    if (paths === undefined && groups === undefined)
      problems.push(`${where}: ${name} has neither paths nor groups; list the paths of its devices`)
    if (shared < 1 || shared > mostShared) problems.push(`${where}.shared: ${shared} must be from 1 to ${mostShared}`)
    return {
      resource,
      paths: (paths ?? []).map((path) => pathOf(`${where}.paths`, path, problems)),
      groups: (groups ?? []).map((group, number) => groupOf(`${where}.groups[${number}]`, group, problems)),
      shared,
    }
  })
}

function groupOf(where: string, group: readonly string[], problems: string[]): readonly DevicePath[] {
  if (group.length === 0) problems.push(`${where}: must list at least one path`)
  const paths = group.map((path) => pathOf(where, path, problems))
  const targets = paths.map(({ pattern, target = pattern }) => target)
  for (const [index, { pattern, target }] of paths.entries()) {
    if (target !== undefined && isPattern(pattern))
      problems.push(`${where}: ${group[index]} must not contain * or ?: one path in the container is for one device`)
    if (targets.indexOf(targets[index] ?? '') < index)
      problems.push(`${where}: ${targets[index]} is the path in the container of two devices; give one of them another`)
  }
  return paths
}

/** `PATH` or `PATH:PATH_IN_CONTAINER`, as in Docker. The names of links in `/dev/serial/by-path` contain `:` too, but never before a `/`. */
function pathOf(where: string, path: string, problems: string[]): DevicePath {
  const end = path.indexOf(':/')
  const pattern = end < 0 ? path : path.slice(0, end)
  const target = end < 0 ? undefined : path.slice(end + 1)
  if (!isBelowDev(pattern) || /[*?].*\//.test(pattern))
    problems.push(`${where}: ${path} must be below /dev, with * and ? in its last part only`)
  if (target !== undefined && (!isBelowDev(target) || isPattern(target)))
    problems.push(`${where}: ${path} must name a path below /dev in the container, without * and ?, after the ":"`)
  return { pattern, target }
}

function isBelowDev(path: string): boolean {
  return /^\/dev\/./.test(path) && !path.split('/').includes('..')
}

function isPattern(path: string): boolean {
  return /[*?]/.test(path)
}
