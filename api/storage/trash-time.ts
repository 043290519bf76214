/** How long the data of a deleted volume stays in the trash of its pool: a parameter of its class. */

/** The parameter of a class of the provisioner `bramble.dev/local-path`. */
export const trashParameter = 'trash'
/** On a PersistentVolume: the parameter of the class that it was made with. */
export const trashAnnotation = 'bramble.dev/trash'

export const usualTrashSeconds = 7 * 24 * 3600

/** `30d`, `12h`, or `0` for no time; at most ten years. undefined: it is not such a time. */
export function trashSeconds(text: string): number | undefined {
  if (text === '0') return 0
  const [, digits, unit] = /^([1-9]\d{0,4})([dh])$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const hours = Number(digits) * (unit === 'd' ? 24 : 1)
  return hours <= 3_650 * 24 ? hours * 3600 : undefined
}

/** Why the parameters of a class are refused; undefined: they are right. */
export function trashProblem(parameters: { readonly [name: string]: string }): string | undefined {
  const given = parameters[trashParameter]
  if (given === undefined || trashSeconds(given) !== undefined) return undefined
  return `invalid value ${JSON.stringify(given)} for the parameter ${trashParameter}: use days or hours, like 30d or 12h, or 0`
}
